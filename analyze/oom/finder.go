package oom

// finder finds which of many words stands next in a text, whatever its case, skipping most of the
// text: Wu and Manber's shift table over two bytes. Words are ASCII and at least minWord long.
type finder struct {
	words   []string // in lower case
	shift   [1 << 16]uint8
	buckets map[uint16][]int32
}

// minWord is the window of the finder: the longer it is, the more of the text is skipped.
const minWord = 6

// lower folds ASCII letters and leaves every other byte.
var lower = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] += 'a' - 'A'
		}
	}
	return t
}()

func newFinder(words []string) *finder {
	f := &finder{words: words, buckets: map[uint16][]int32{}}
	for i := range f.shift {
		f.shift[i] = minWord - 1
	}
	for id, w := range words {
		if len(w) < minWord {
			panic("oom: word too short: " + w)
		}
		for end := 1; end < minWord; end++ {
			for _, key := range cases(w[end-1], w[end]) {
				f.shift[key] = min(f.shift[key], uint8(minWord-1-end))
			}
		}
		for _, key := range cases(w[minWord-2], w[minWord-1]) {
			f.buckets[key] = append(f.buckets[key], int32(id))
		}
	}
	return f
}

// cases are the keys of two bytes in every case of their letters.
func cases(a, b byte) []uint16 {
	upper := func(c byte) byte {
		if 'a' <= c && c <= 'z' {
			return c - ('a' - 'A')
		}
		return c
	}
	var keys []uint16
	for _, x := range []byte{a, upper(a)} {
		for _, y := range []byte{b, upper(b)} {
			key := uint16(x)<<8 | uint16(y)
			if len(keys) == 0 || keys[len(keys)-1] != key {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) == 4 || keys[0] != keys[len(keys)-1] || len(keys) == 1 {
		return keys
	}
	return keys[:1]
}

// next is where in b, from position from on, a word begins; -1 where none does.
func (f *finder) next(b string, from int) int {
	for i := from + minWord - 1; i < len(b); {
		key := uint16(b[i-1])<<8 | uint16(b[i])
		if s := f.shift[key]; s > 0 {
			i += int(s)
			continue
		}
		start := i - minWord + 1
		for _, id := range f.buckets[key] {
			if f.matches(b[start:], f.words[id]) {
				return start
			}
		}
		i++
	}
	return -1
}

// at appends the words that begin at position start of b to ids.
func (f *finder) at(b string, start int, ids []int32) []int32 {
	end := start + minWord
	for _, id := range f.buckets[uint16(b[end-2])<<8|uint16(b[end-1])] {
		if f.matches(b[start:], f.words[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (f *finder) matches(b, word string) bool {
	if len(b) < len(word) {
		return false
	}
	for i := range len(word) {
		if lower[b[i]] != word[i] {
			return false
		}
	}
	return true
}
