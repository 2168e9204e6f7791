// Reads base32 ids.
package ids

import (
	"errors"
	"strings"
)

const base32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U"

var errNoBase32 = errors.New("not an id")

func FromBase32(text string, checkSymbol bool) (int64, error) {
	text = strings.NewReplacer("-", "", "o", "0", "O", "0", "i", "1", "I", "1", "l", "1", "L", "1").Replace(text)
	text = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}, text)
	if !checkSymbol && len(text) != 13 || checkSymbol && len(text) != 14 {
		return 0, errNoBase32
	}
	n := uint64(0)
	for i := 0; i < 13; i++ {
		digit := strings.IndexByte(base32[:32], text[i])
		if digit < 0 || n >= 1<<58 {
			return 0, errNoBase32
		}
		n = n*32 + uint64(digit)
	}
	if checkSymbol && base32[n%37] != text[13] {
		return 0, errNoBase32
	}
	return int64(n), nil
}
