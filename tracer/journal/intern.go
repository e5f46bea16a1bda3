package journal

import (
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

const (
	// MaxWords is how many different words a journal can hold; what comes later is recorded as
	// OtherWord, and counted.
	MaxWords = 1<<16 - 1
	// MaxWordBytes is the longest word; the rest of a longer one is cut.
	MaxWordBytes = 1024
	// OtherWord stands for words that found no number.
	OtherWord = "other"
)

// interner gives words numbers. Known words are found without a lock: read is copied, never
// changed, and what is new gathers in fresh until it has grown to the size of read.
type interner struct {
	read  atomic.Pointer[map[string]uint16]
	mu    sync.Mutex
	fresh map[string]uint16
	hits  int // finds in fresh since the last promotion
	used  int
	other uint16 // number of OtherWord, 0 before it is needed
}

func (in *interner) init() {
	in.read.Store(&map[string]uint16{"": 0})
	in.fresh = map[string]uint16{}
}

// Word is the number of text, whose definition is in the journal before the number is handed out.
// "" is 0.
func (j *Journal) Word(text string) uint16 {
	if n, ok := (*j.words.read.Load())[text]; ok {
		return n
	}
	return j.newWord(text)
}

func (j *Journal) newWord(text string) uint16 {
	in := &j.words
	in.mu.Lock()
	defer in.mu.Unlock()
	if n, ok := (*in.read.Load())[text]; ok {
		return n
	}
	if n, ok := in.fresh[text]; ok {
		in.hits++
		in.promote()
		return n
	}
	if in.other == 0 { // set aside first, so that it is there when all others are taken
		in.other = j.define(OtherWord)
		in.add(OtherWord, in.other)
	}
	if text == OtherWord {
		return in.other
	}
	n := uint16(0)
	if in.used < MaxWords {
		n = j.define(text)
	}
	if n == 0 {
		if !j.closed.Load() {
			j.counter(ctrWordsFull).Add(1)
		}
		return in.other
	}
	in.add(text, n)
	return n
}

// define journals a word's definition and gives its number; 0 when it could not be written. mu is
// held.
func (j *Journal) define(text string) uint16 {
	stored := clean(text)
	n := uint16(j.words.used + 1)
	r := ownRecord(KindString, j.Now())
	r.ID, r.Word0 = uint32(len(stored)), n
	s := j.acquire(j.home())
	if s == nil {
		return 0
	}
	defer s.state.Store(shardFree)
	ext := []byte(stored)
	k := (len(ext) + RecordBytes - 1) / RecordBytes
	if s.at+k >= BlockRecords && !j.nextBlock(s, r.TimeNS) {
		return 0
	}
	j.write(s, &r, ext, k)
	j.words.used++
	return n
}

// clean makes text storable: UTF-8, not too long.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for len(text) > MaxWordBytes {
		_, size := utf8.DecodeLastRuneInString(text[:MaxWordBytes+1])
		text = text[:MaxWordBytes+1-size]
	}
	return text
}

func (in *interner) add(text string, n uint16) {
	if n != 0 {
		in.fresh[strings.Clone(text)] = n
		in.promote()
	}
}

// promote moves what is fresh into the map that is read without a lock. It copies the whole map, so
// it waits until new words and locked finds together are worth that.
func (in *interner) promote() {
	old := *in.read.Load()
	if in.hits+len(in.fresh) <= len(old)/4 {
		return
	}
	m := make(map[string]uint16, len(old)+len(in.fresh))
	for k, v := range old {
		m[k] = v
	}
	for k, v := range in.fresh {
		m[k] = v
	}
	in.read.Store(&m)
	clear(in.fresh)
	in.hits = 0
}
