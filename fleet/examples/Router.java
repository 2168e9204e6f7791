import java.sql.*;
import java.util.*;
import java.util.regex.*;

/**
 * Routes by id from an application, with JDBC: the map is cached by its version. For one thread.
 *
 * <p>Router URL SHARD COUNT: signs up COUNT users in a shard and reads each by its id. URL is that of any
 * database that has the map, the control database or a copy. JDBC does not read connection strings of
 * libpq, as the map has them, so they are taken apart here.
 */
public class Router implements AutoCloseable {
  /** Part of a transaction; it may run more than once. */
  @FunctionalInterface
  public interface Work<T> {
    T run(Connection connection, String schema) throws SQLException;
  }

  /** What a transaction meets while its shard moves: the fence, then tables that are gone. */
  private static final Set<String> MOVED = Set.of("40001", "42P01", "3F000");

  private static final Pattern OPTION = Pattern.compile("(\\w+)\\s*=\\s*(?:'((?:[^'\\\\]|\\\\.)*)'|(\\S*))");

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
    for (Matcher m = OPTION.matcher(conninfo); m.find();)
      option.put(m.group(1), (m.group(2) != null ? m.group(2) : m.group(3)).replaceAll("\\\\(.)", "$1"));
    String user = option.containsKey("user") ? "?user=" + option.get("user") : "";
    return "jdbc:postgresql://" + option.get("host") + ":" + option.getOrDefault("port", "5432") + "/" + option.get("dbname") + user;
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
