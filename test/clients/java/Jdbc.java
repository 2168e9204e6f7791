// Jars: postgresql
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/** JDBC: ids are longs, and exact; what a shard is passed as. */
final class Jdbc {
    private static Connection connection;

    private static List<String> strings(String sql) throws SQLException {
        List<String> rows = new ArrayList<>();
        try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(sql)) {
            while (result.next()) {
                rows.add(result.getString(1));
            }
        }
        return rows;
    }

    private static List<String> asText() throws SQLException {
        return strings("SELECT id::text FROM photos ORDER BY photos.id");
    }

    private static long shardOf(String sql, Object shard) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setObject(1, shard);
            ResultSet result = statement.executeQuery();
            result.next();
            return result.getLong(1);
        }
    }

    public static void main(String[] arguments) throws SQLException {
        connection = DriverManager.getConnection(Tap.url());
        connection.createStatement().execute("CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)");
        List<Long> ids = new ArrayList<>();
        try (PreparedStatement insert =
                connection.prepareStatement("INSERT INTO photos (caption) VALUES (?)", new String[] {"id"})) {
            insert.setString(1, "first light");
            insert.executeUpdate();
            ResultSet keys = insert.getGeneratedKeys();
            keys.next();
            ids.add(keys.getLong("id"));
            for (int row = 0; row < 1000; row++) {
                insert.setString(1, "many");
                insert.addBatch();
            }
            insert.executeBatch();
            for (keys = insert.getGeneratedKeys(); keys.next(); ) {
                ids.add(keys.getLong("id"));
            }
        }
        List<String> shown = new ArrayList<>();
        ids.stream().sorted().forEach(id -> shown.add(id.toString()));
        Tap.equal(shown, asText(), "getGeneratedKeys() of a row and of a batch of 1,000");
        try (PreparedStatement select = connection.prepareStatement("SELECT caption FROM photos WHERE id = ?")) {
            select.setLong(1, ids.get(0));
            ResultSet result = select.executeQuery();
            result.next();
            Tap.equal(result.getString(1), "first light", "the id as a parameter");
        }

        String next = "SELECT snowflake.shard_of(snowflake.next_id(?))";
        Tap.equal(shardOf(next, 7), 7L, "an int as the shard");
        try {
            shardOf(next, 7L);
            Tap.equal("no error", "an error", "a long as the shard is refused");
        } catch (SQLException error) {
            Tap.equal(error.getMessage().contains("next_id(bigint) does not exist"), true, "a long as the shard is refused");
        }
        Tap.equal(shardOf("SELECT snowflake.shard_of(snowflake.next_id(?::int))", 7L), 7L, "and taken with ?::int");
        Tap.done();
    }
}
