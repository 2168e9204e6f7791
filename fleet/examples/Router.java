import java.sql.*;
import java.util.*;
import java.util.regex.*;

/**
 * Routes by id from an application, with JDBC: the map is cached by its version.
 *
 * <p>Router URL SHARD COUNT: signs up COUNT users in a shard and reads each by its id. URL is that of any
 * database that has the map, the control database or a copy. JDBC does not read connection strings of
 * libpq, as the map has them, so they are taken apart here.
 */
public class Router implements AutoCloseable {
  /** What a writer meets while its shard moves: the fence, then tables that are gone. */
  private static final Set<String> MOVED = Set.of("40001", "42P01", "3F000");

  private final Connection map;
  private final int sequenceBits;
  private final int mask;
  private final Map<Integer, String> places = new HashMap<>();
  private final Map<String, Connection> connections = new HashMap<>();
  private long version = -1;

  Router(String url) throws SQLException {
    map = DriverManager.getConnection(url);
    try (ResultSet row = map.createStatement().executeQuery("SELECT sequence_bits, shards FROM snowflake.layout")) {
      row.next();
      sequenceBits = row.getInt(1);
      mask = row.getInt(2) - 1;
    }
    refresh();
  }

  /** Reads the map again if it has changed: one number where it has not. */
  void refresh() throws SQLException {
    try (ResultSet row = map.createStatement().executeQuery("SELECT snowflake_fleet.map_version()")) {
      row.next();
      if (row.getLong(1) == version) return;
      version = row.getLong(1);
    }
    try (ResultSet row = map.createStatement().executeQuery("SELECT shard, conninfo, version FROM snowflake_fleet.map")) {
      places.clear();
      while (row.next()) {
        places.put(row.getInt(1), row.getString(2));
        version = row.getLong(3);
      }
    }
  }

  int shardOf(long id) {
    return (int) (id >> sequenceBits) & mask;
  }

  private Connection connection(String conninfo) throws SQLException {
    Connection connection = connections.get(conninfo);
    if (connection == null) {
      Map<String, String> option = new HashMap<>();
      Matcher matcher = Pattern.compile("(\\w+)\\s*=\\s*('(?:[^'\\\\]|\\\\.)*'|\\S*)").matcher(conninfo);
      while (matcher.find()) option.put(matcher.group(1), matcher.group(2).replaceAll("^'|'$", ""));
      connection = DriverManager.getConnection("jdbc:postgresql://" + option.get("host") + ":"
          + option.getOrDefault("port", "5432") + "/" + option.get("dbname"));
      connections.put(conninfo, connection);
    }
    return connection;
  }

  /** Runs a statement of one transaction where the shard is; {schema} in it is the shard's schema. */
  Object run(int shard, String statement, Object value) throws SQLException, InterruptedException {
    for (long until = System.nanoTime() + 30_000_000_000L;;) {
      try (PreparedStatement prepared =
          connection(places.get(shard)).prepareStatement(statement.replace("{schema}", "shard_" + shard))) {
        prepared.setObject(1, value);
        try (ResultSet row = prepared.executeQuery()) {
          return row.next() ? row.getObject(1) : null;
        }
      } catch (SQLException error) {
        if (!MOVED.contains(error.getSQLState()) || System.nanoTime() > until) throw error;
        Thread.sleep(5);
        refresh();
      }
    }
  }

  @Override
  public void close() throws SQLException {
    map.close();
    for (Connection connection : connections.values()) connection.close();
  }

  public static void main(String[] argument) throws Exception {
    try (Router router = new Router(argument[0])) {
      for (int n = 0; n < Integer.parseInt(argument[2]); n++) {
        long id = (Long) router.run(Integer.parseInt(argument[1]),
            "INSERT INTO {schema}.users (name) VALUES (?) RETURNING id", "java " + n);
        Object name = router.run(router.shardOf(id), "SELECT name FROM {schema}.users WHERE id = ?", id);
        if (!("java " + n).equals(name)) throw new IllegalStateException(id + " is " + name);
        System.out.println(id + " " + name);
        Thread.sleep(10);
      }
    }
  }
}
