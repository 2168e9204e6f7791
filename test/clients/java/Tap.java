/** Checks in TAP, for the clients in Java. */
final class Tap {
    private static int count;

    static void equal(Object found, Object expected, String what) {
        boolean passed = expected.equals(found);
        System.out.println((passed ? "ok " : "not ok ") + ++count + " - " + what);
        if (!passed) {
            System.out.println(("# found: " + found + " instead of " + expected).replaceAll("(.{500}).*", "$1"));
        }
    }

    static void done() {
        System.out.println("1.." + count);
    }

    static String url() {
        return "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE") + "?user="
                + System.getenv("PGUSER");
    }
}
