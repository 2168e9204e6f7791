import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.util.*;
import java.util.regex.*;

/**
 * Routes by id from an application, with JDBC: the map is cached by its version. For one thread.
 *
 * <p>Router URL SHARD COUNT: signs up COUNT users in a shard and reads each by its id. URL is that of a database
 * that has the map and the extension snowflake, which knows the layout of ids: a data server or a router; the
 * control database where both are installed there. JDBC does not read connection strings of libpq, as the map
 * has them, so they are taken apart here: every option is obeyed, or refused.
 */
public class Router implements AutoCloseable {
  /** Part of a transaction; it may run more than once. */
  @FunctionalInterface
  public interface Work<T> {
    T run(Connection connection, String schema) throws SQLException;
  }

  /** What a transaction meets while its shard moves: the fence, then tables that are gone. */
  private static final Set<String> MOVED = Set.of("40001", "42P01", "3F000");

  private static final Pattern OPTION =
      Pattern.compile("\\s*([a-z_]+)\\s*=\\s*(?:'((?:[^'\\\\]|\\\\.)*)'|((?:[^'\\\\\\s]|\\\\.)*))(?:\\s+|$)", Pattern.DOTALL);

  /** Options of libpq, and what JDBC calls them. */
  private static final Map<String, String> NAMES = Map.of("user", "user", "application_name", "ApplicationName", "options", "options",
      "connect_timeout", "connectTimeout", "sslmode", "sslmode", "sslrootcert", "sslrootcert");

  private final String url;
  private final int sequenceBits;
  private final int mask;
  private final Map<Integer, String> places = new HashMap<>();
  private final Map<String, Connection> connections = new HashMap<>();
  private long version = -1;

  public Router(String url) throws SQLException {
    this.url = url;
    try (Statement statement = connection(url).createStatement();
        ResultSet row = statement.executeQuery("SELECT sequence_bits, shards FROM snowflake.layout")) {
      row.next();
      sequenceBits = row.getInt(1);
      mask = row.getInt(2) - 1;
    }
    refresh();
  }

  /** Reads the map again if it has changed: one number where it has not. */
  public void refresh() throws SQLException {
    try (Statement statement = connection(url).createStatement()) {
      try (ResultSet row = statement.executeQuery("SELECT snowflake_fleet.map_version()")) {
        row.next();
        if (row.getLong(1) == version) return;
        version = row.getLong(1);
      }
      try (ResultSet row = statement.executeQuery("SELECT shard, conninfo, version FROM snowflake_fleet.map")) {
        places.clear();
        while (row.next()) {
          places.put(row.getInt(1), urlOf(row.getString(2)));
          version = row.getLong(3);
        }
      }
    }
  }

  public int shardOf(long id) {
    return (int) (id >> sequenceBits) & mask;
  }

  /** A connection string of the map as a URL. */
  static String urlOf(String conninfo) {
    Map<String, String> option = new HashMap<>();
    Matcher m = OPTION.matcher(conninfo);
    int end = 0;
    for (; m.lookingAt(); m.region(end, conninfo.length())) {
      option.put(m.group(1), (m.group(2) != null ? m.group(2) : m.group(3)).replaceAll("(?s)\\\\(.)", "$1"));
      end = m.end();
      if (end == conninfo.length()) break;
    }
    if (end != conninfo.length()) throw new IllegalArgumentException("a connection string cannot be read");
    String host = option.remove("host"), port = option.remove("port"), database = option.remove("dbname");
    if (host == null || host.isEmpty() || host.startsWith("/")) throw refused("a host that is none of TCP");
    if ((host + port).contains(",")) throw refused("several hosts");
    if (database == null) throw refused("no dbname");
    // libpq verifies where it has a root certificate.
    if (option.containsKey("sslrootcert") && "require".equals(option.get("sslmode"))) option.put("sslmode", "verify-ca");
    StringJoiner parameters = new StringJoiner("&", "?", "").add("tcpKeepAlive=true").add("socketTimeout=60");
    option.putIfAbsent("connect_timeout", "10");
    option.putIfAbsent("options", "-c statement_timeout=30s");
    option.forEach((name, value) -> {
      if (!NAMES.containsKey(name) && !name.startsWith("keepalives")) throw refused(name);
      if (NAMES.containsKey(name)) parameters.add(NAMES.get(name) + "=" + encoded(value));
    });
    return "jdbc:postgresql://" + (host.contains(":") ? "[" + host + "]" : host) + ":" + (port == null ? "5432" : port) + "/" + encoded(database) + parameters;
  }

  private static IllegalArgumentException refused(String what) {
    return new IllegalArgumentException("this router cannot do what a connection string wants: " + what);
  }

  private static String encoded(String value) {
    return URLEncoder.encode(value, StandardCharsets.UTF_8).replace("+", "%20");
  }

  /** The connection that is kept, or a new one where there is none or it broke. */
  private Connection connection(String to) throws SQLException {
    Connection connection = connections.get(to);
    if (connection == null || connection.isClosed()) {
      connection = DriverManager.getConnection(to);
      connections.put(to, connection);
    }
    return connection;
  }

  /**
   * Returns what work does as a transaction where the shard is; again where the shard moves meanwhile, for
   * half a minute. Of a connection that breaks the caller is told: whether a commit was done then, only the
   * data can say.
   */
  public <T> T run(int shard, Work<T> work) throws SQLException, InterruptedException {
    long until = System.nanoTime() + 30_000_000_000L;
    for (int pause = 5;; pause = Math.min(2 * pause, 100)) {
      if (!places.containsKey(shard)) refresh();
      if (!places.containsKey(shard)) throw new NoSuchElementException("shard " + shard + " is not in the map of version " + version);
      Connection connection = connection(places.get(shard));
      connection.setAutoCommit(false);
      try {
        T result = work.run(connection, "shard_" + shard);
        connection.commit();
        return result;
      } catch (SQLException error) {
        if (!connection.isClosed()) connection.rollback();
        if (!MOVED.contains(error.getSQLState()) || System.nanoTime() - until > 0) throw error;
      } finally {
        if (!connection.isClosed()) connection.setAutoCommit(true);
      }
      Thread.sleep(pause);
      refresh();
    }
  }

  @Override
  public void close() throws SQLException {
    for (Connection connection : connections.values()) connection.close();
  }

  /** The first column of the first row. */
  private static Object one(Connection connection, String sql, Object value) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      statement.setObject(1, value);
      try (ResultSet row = statement.executeQuery()) {
        return row.next() ? row.getObject(1) : null;
      }
    }
  }

  public static void main(String[] argument) throws Exception {
    try (Router router = new Router(argument[0])) {
      for (int n = 0; n < Integer.parseInt(argument[2]); n++) {
        String wanted = "java " + n;
        long id = (Long) router.run(Integer.parseInt(argument[1]), (connection, schema) ->
            one(connection, "INSERT INTO " + schema + ".users (name) VALUES (?) RETURNING id", wanted));
        Object name = router.run(router.shardOf(id), (connection, schema) ->
            one(connection, "SELECT name FROM " + schema + ".users WHERE id = ?", id));
        if (!wanted.equals(name)) throw new IllegalStateException(id + " is " + name);
        System.out.println(id + " " + name);
        Thread.sleep(10);
      }
    }
  }
}
