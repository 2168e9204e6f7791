// Reads and writes ids. For another layout, change the numbers at the top of the class.
using System;
using System.Security.Cryptography;
using System.Text;

public static class Ids
{
    const long Epoch = 1735689600000, Tick = 1;
    const int RegionBits = 5, ShardBits = 8, SequenceBits = 10;
    const string Base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

    static long Checked(long id)
    {
        if (id < 0) throw new ArgumentOutOfRangeException("id", "not an id");
        return id;
    }

    public static DateTimeOffset TimeOf(long id)
    {
        return DateTimeOffset.FromUnixTimeMilliseconds(Epoch + (Checked(id) >> (RegionBits + ShardBits + SequenceBits)) * Tick);
    }

    public static long RegionOf(long id)
    {
        return Checked(id) >> (ShardBits + SequenceBits) & ((1L << RegionBits) - 1);
    }

    public static long ShardOf(long id)
    {
        return Checked(id) >> SequenceBits & ((1L << ShardBits) - 1);
    }

    public static long SequenceOf(long id)
    {
        return Checked(id) & ((1L << SequenceBits) - 1);
    }

    public static string ToBase62(long id)
    {
        var text = new char[11];
        var rest = Checked(id);
        for (int i = text.Length - 1; i >= 0; i--, rest /= 62) text[i] = Base62[(int)(rest % 62)];
        return new string(text);
    }

    public static long FromBase62(string text)
    {
        if (text.Length != 11) throw new FormatException("not a base62 id");
        long id = 0;
        foreach (char symbol in text)
        {
            int digit = Base62.IndexOf(symbol);
            if (digit < 0 || id > (long.MaxValue - digit) / 62) throw new FormatException("not a base62 id");
            id = id * 62 + digit;
        }
        return id;
    }

    public static int ShardFor(object key, int shards = 1 << ShardBits)
    {
        if (shards < 1 || shards > 1 << ShardBits) throw new ArgumentOutOfRangeException("shards", "not a number of shards");
        using (var sha256 = SHA256.Create())
        {
            byte[] hash = sha256.ComputeHash(Encoding.UTF8.GetBytes(key.ToString()));
            ulong number = (ulong)hash[0] << 24 | (ulong)hash[1] << 16 | (ulong)hash[2] << 8 | hash[3];
            return (int)(number * (ulong)shards >> 32);
        }
    }
}
