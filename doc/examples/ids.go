// Reads and writes ids. For another layout, change the numbers below.
package ids

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

const (
	epoch, tick                         = 1735689600000, 1
	regionBits, shardBits, sequenceBits = 5, 8, 10
	base62                              = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

var errNoID = errors.New("not an id")

type Fields struct {
	Time                    time.Time
	Region, Shard, Sequence int64
}

func Decode(id int64) (Fields, error) {
	if id < 0 {
		return Fields{}, errNoID
	}
	return Fields{
		time.UnixMilli(epoch + id>>(regionBits+shardBits+sequenceBits)*tick).UTC(),
		id >> (shardBits + sequenceBits) & (1<<regionBits - 1),
		id >> sequenceBits & (1<<shardBits - 1),
		id & (1<<sequenceBits - 1),
	}, nil
}

func ToBase62(id int64) (string, error) {
	if id < 0 {
		return "", errNoID
	}
	var text [11]byte
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = base62[id%62]
		id /= 62
	}
	return string(text[:]), nil
}

func FromBase62(text string) (int64, error) {
	if len(text) != 11 {
		return 0, errNoID
	}
	var id int64
	for i := 0; i < len(text); i++ {
		digit := int64(strings.IndexByte(base62, text[i]))
		if digit < 0 || id > (1<<63-1-digit)/62 {
			return 0, errNoID
		}
		id = id*62 + digit
	}
	return id, nil
}

const Shards = 1 << shardBits

func ShardFor(key string, shards int64) (int64, error) {
	if shards < 1 || shards > Shards {
		return 0, errors.New("not a number of shards")
	}
	hash := sha256.Sum256([]byte(key))
	return int64(binary.BigEndian.Uint32(hash[:])) * shards >> 32, nil
}
