package oom

import "slices"

// rules is every known word with what it marks; built once.
type rules struct {
	words  []ruleWord
	finder *finder
}

type ruleWord struct {
	text   string
	kind   kind
	strong bool
	rule   int // of the table of its kind
}

func newRules() *rules {
	r := &rules{}
	for _, w := range kernelWords {
		r.words = append(r.words, ruleWord{w.text, w.kind, w.strong, -1})
	}
	for i, k := range killerRules {
		r.words = append(r.words, ruleWord{k.word, kindKiller, false, i})
	}
	for i := range programRules {
		for _, text := range programRules[i].words {
			r.words = append(r.words, ruleWord{text, kindProgram, false, i})
		}
	}
	for _, w := range statusWords {
		r.words = append(r.words, ruleWord{w.text, kindStatus, false, w.rule})
	}
	texts := make([]string, len(r.words))
	for i, w := range r.words {
		texts[i] = w.text
	}
	r.finder = newFinder(texts)
	return r
}

// maxFound bounds the words looked at in one line.
const maxFound = 24

// kindOf is what a message is by the words in it: of several, the first of the table whose fields
// can be read.
func (r *rules) kindOf(msg string) (k kind, rule int, strong bool) {
	var space [maxFound]int32
	found := space[:0]
	for at := r.finder.next(msg, 0); at >= 0 && len(found) < maxFound; at = r.finder.next(msg,
		at+1) {
		found = r.finder.at(msg, at, found)
	}
	slices.Sort(found)
	for _, id := range found {
		w := &r.words[id]
		if k := r.settle(w, msg); k != kindNone {
			return k, w.rule, w.strong
		}
	}
	return kindNone, 0, false
}

// settle is the kind of a line that holds the word w; none where its fields are not there.
func (r *rules) settle(w *ruleWord, msg string) kind {
	if w.kind <= lastKernelKind {
		return kernelKind(w.kind, msg)
	}
	switch w.kind {
	case kindProgram:
		if !programRules[w.rule].fits(msg) {
			return kindNone
		}
	case kindStatus:
		if !ended(w.rule, msg) {
			return kindNone
		}
	case kindKiller:
		if !killerRules[w.rule].read(newEvent(SourceKiller, "", &unstamped), msg) {
			return kindNone
		}
	}
	return w.kind
}

// fine says whether the rest of a line, from its first word on, only says that something exited, and
// not by SIGKILL. Logs can be full of these: 3 µs a line to read them.
func (r *rules) fine(rest string) bool {
	var space [maxFound]int32
	for at := r.finder.next(rest, 0); at >= 0; at = r.finder.next(rest, at+1) {
		for _, id := range r.finder.at(rest, at, space[:0]) {
			if w := &r.words[id]; w.kind != kindStatus || w.rule != statusExit {
				return false
			}
		}
	}
	_, known := exitNumber(rest)
	return known && !ended(statusExit, rest)
}

// strongAt says whether one of the words at a position is only ever the kernel's.
func (r *rules) strongAt(text string, at int) bool {
	var space [8]int32
	for _, id := range r.finder.at(text, at, space[:0]) {
		if r.words[id].strong {
			return true
		}
	}
	return false
}
