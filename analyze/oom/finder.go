package oom

// finder finds which of many words stands next in a text, whatever its case, skipping most of the
// text: Wu and Manber's shift table over three bytes. Words are ASCII and at least minWord long.
type finder struct {
	words   []string // in lower case
	shift   [1 << gramBits]uint8
	bucket  [1 << gramBits]uint16 // of buckets; 0 is empty
	buckets [][]int32
}

const (
	minWord  = 7 // the window of the finder: the longer it is, the more of the text is skipped
	gram     = 3 // bytes that decide how far to skip
	gramBits = 14
)

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

// gramKey is a hash of three bytes that does not see the case of letters.
func gramKey(a, b, c byte) uint16 {
	v := (uint32(a) | uint32(b)<<8 | uint32(c)<<16) | 0x202020
	return uint16(v * 0x9e3779b1 >> (32 - gramBits))
}

func newFinder(words []string) *finder {
	f := &finder{words: words, buckets: make([][]int32, 1)}
	for i := range f.shift {
		f.shift[i] = minWord - gram + 1
	}
	for id, w := range words {
		if len(w) < minWord {
			panic("oom: word too short: " + w)
		}
		for end := gram; end < minWord; end++ {
			key := gramKey(w[end-3], w[end-2], w[end-1])
			f.shift[key] = min(f.shift[key], uint8(minWord-end))
		}
		key := gramKey(w[minWord-3], w[minWord-2], w[minWord-1])
		if f.bucket[key] == 0 {
			f.bucket[key] = uint16(len(f.buckets))
			f.buckets = append(f.buckets, nil)
		}
		f.buckets[f.bucket[key]] = append(f.buckets[f.bucket[key]], int32(id))
		f.shift[key] = 0
	}
	return f
}

// next is where in b, from position from on, a word begins; -1 where none does.
func (f *finder) next(b string, from int) int {
	for i := from + minWord - 1; i < len(b); {
		key := gramKey(b[i-2], b[i-1], b[i])
		if s := f.shift[key]; s > 0 {
			i += int(s)
			continue
		}
		start := i - minWord + 1
		for _, id := range f.buckets[f.bucket[key]] {
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
	for _, id := range f.buckets[f.bucket[gramKey(b[end-3], b[end-2], b[end-1])]] {
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
