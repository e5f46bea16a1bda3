package memory

import "strings"

// word stands for a string of the trace.
type word uint32

// words gives each string of the trace a small number. Strings are copied, because rows are valid
// for one step only.
type words struct {
	index map[string]word
	text  []string
}

func newWords() words {
	w := words{index: map[string]word{}}
	w.of("")
	return w
}

func (w *words) of(s string) word {
	if i, ok := w.index[s]; ok {
		return i
	}
	i := word(len(w.text))
	s = strings.Clone(s)
	w.index[s] = i
	w.text = append(w.text, s)
	return i
}

// idSet is a set of buffer ids, 64 to a word: ids are dense within a source, whose range starts
// anywhere.
type idSet map[int64]uint64

// add puts id in and says whether it was there.
func (s idSet) add(id int64) bool {
	was := s.has(id)
	s[id>>6] |= 1 << (id & 63)
	return was
}

func (s idSet) has(id int64) bool { return s[id>>6]&(1<<(id&63)) != 0 }
