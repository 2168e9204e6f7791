// Reads and writes ids. For another layout, change the numbers at the top of the class.
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;

public final class Ids {
  private static final long EPOCH = 1735689600000L, TICK = 1;
  private static final int REGION_BITS = 5, SHARD_BITS = 8, SEQUENCE_BITS = 10;
  private static final String BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

  private static long checked(long id) {
    if (id < 0) throw new IllegalArgumentException("not an id");
    return id;
  }

  public static Instant timeOf(long id) {
    return Instant.ofEpochMilli(EPOCH + (checked(id) >> REGION_BITS + SHARD_BITS + SEQUENCE_BITS) * TICK);
  }

  public static int regionOf(long id) {
    return (int) (checked(id) >> SHARD_BITS + SEQUENCE_BITS) & (1 << REGION_BITS) - 1;
  }

  public static int shardOf(long id) {
    return (int) (checked(id) >> SEQUENCE_BITS) & (1 << SHARD_BITS) - 1;
  }

  public static int sequenceOf(long id) {
    return (int) checked(id) & (1 << SEQUENCE_BITS) - 1;
  }

  public static String toBase62(long id) {
    char[] text = new char[11];
    long rest = checked(id);
    for (int i = text.length - 1; i >= 0; i--, rest /= 62) text[i] = BASE62.charAt((int) (rest % 62));
    return new String(text);
  }

  public static long fromBase62(String text) {
    if (text.length() != 11) throw new IllegalArgumentException("not a base62 id");
    long id = 0;
    for (char symbol : text.toCharArray()) {
      int digit = BASE62.indexOf(symbol);
      if (digit < 0 || id > (Long.MAX_VALUE - digit) / 62) throw new IllegalArgumentException("not a base62 id");
      id = id * 62 + digit;
    }
    return id;
  }

  public static int shardFor(Object key) {
    return shardFor(key, 1 << SHARD_BITS);
  }

  public static int shardFor(Object key, int shards) {
    if (shards < 1 || shards > 1 << SHARD_BITS) throw new IllegalArgumentException("not a number of shards");
    try {
      byte[] hash = MessageDigest.getInstance("SHA-256").digest(key.toString().getBytes(StandardCharsets.UTF_8));
      return (int) ((ByteBuffer.wrap(hash).getInt() & 0xffffffffL) * shards >> 32);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
