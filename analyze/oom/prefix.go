package oom

import "strings"

// head is what stands before a line's message.
type head struct {
	stamp stamp
	host  string
	tag   string // the program that logged: kernel, systemd-oomd …
	text  bool   // there was a prefix at all
	memo  *dateMemo
}

// A stripper takes one kind of prefix off the front of s, notes it in h, and gives the rest; it
// gives s where its kind does not stand there.
type stripper func(h *head, s string) string

// strippers are the kinds of prefix, by the first byte that is not blank. They are tried in turn
// until none finds anything more, so that prefixes may stand in any order and number: a mail's
// quote before a container's name before a syslog stamp before a kernel's.
var strippers = func() (t [256][]stripper) {
	add := func(bytes string, list ...stripper) {
		for _, b := range []byte(bytes) {
			t[b] = append(t[b], list...)
		}
	}
	const digits, small, large = "0123456789", "abcdefghijklmnopqrstuvwxyz",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	add(">`\"", stripQuote)
	add(digits, stripListNumber, stripKmsg, stripISO, stripNumeric, stripUnix,
		stripLogcat)
	add("<", stripPriority)
	add("[", stripBracket)
	add(":|", stripTag, stripPipe)
	add("k", stripFacility)
	add("IWEF", stripKlog)
	add("s", stripStream)
	add(",", stripComma)
	add(small+large, stripISO)
	add("/.", stripGrep)
	for b := range t {
		switch c := byte(b); {
		case 'a' <= lower[c] && lower[c] <= 'z', '0' <= c && c <= '9', c >= 0x80:
			add(string([]byte{c}), stripSyslog, stripTag, stripPipe, stripGrep)
		case c == '.':
			add(".", stripTag)
		}
	}
	return t
}()

// maxPrefixes bounds how many prefixes one line may have.
const maxPrefixes = 16

// cutHead splits a line into what stands before the message and the message.
func cutHead(s string) (h head, message string) {
	h.stamp = unstamped
	h.cut(&s, nil)
	return h, s
}

// cut takes the prefixes off the front of s. memo may be nil.
func (h *head) cut(s *string, memo *dateMemo) {
	h.memo = memo
	for range maxPrefixes {
		before := len(*s)
		i := 0
		for i < len(*s) && ((*s)[i] == ' ' || (*s)[i] == '\t') {
			i++
		}
		if i == len(*s) {
			return
		}
		for _, strip := range strippers[(*s)[i]] {
			if *s = strip(h, *s); len(*s) != before {
				break
			}
		}
		if len(*s) == before {
			return
		}
		h.text = true
	}
}

// dateMemo is the last date that was read: the lines of a report share it.
type dateMemo struct {
	text string
	at   stamp
}

// stripQuote takes a mail's or a page's quote marks.
func stripQuote(_ *head, s string) string {
	t := strings.TrimLeft(s, " \t")
	for strings.HasPrefix(t, ">") || strings.HasPrefix(t, "`") || strings.HasPrefix(t, "\"") {
		t = strings.TrimLeft(t[1:], " \t")
		s = t
	}
	return s
}

// stripComma takes the comma behind a stamp in a CSV export, with the host where one follows.
func stripComma(h *head, s string) string {
	if h.stamp.kind == noStamp {
		return s
	}
	s = strings.TrimLeft(s, " ,")
	i := strings.IndexByte(s[:min(len(s), 64)], ',')
	if i > 0 && h.host == "" && !strings.ContainsAny(s[:i], " :=(") {
		h.host = s[:i]
		return s[i+1:]
	}
	return s
}

// stripListNumber takes "1. " before what a page's list numbers, and "1234:" of grep -n.
func stripListNumber(_ *head, s string) string {
	_, rest, ok := cutDigits(strings.TrimLeft(s, " \t"), 1, 9)
	if ok && len(rest) > 1 && (rest[0] == ':' || rest[0] == '-') && isStamped(rest[1:]) {
		return rest[1:]
	}
	if ok && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ": ") ||
		strings.HasPrefix(rest, "\t")) {
		if t := strings.TrimLeft(rest[1:], " \t"); strings.HasPrefix(t, "<") ||
			strings.HasPrefix(t, "[") {
			return t
		}
	}
	return s
}

// stripGrep takes "/var/log/kern.log:" or "kern.log-1234-" of a grep over several files: a name
// without blanks, and behind it a line that begins with its time.
func stripGrep(_ *head, s string) string {
	for i := 0; i < len(s) && i < 160 && s[i] > ' '; i++ {
		switch c := s[i]; {
		case strings.IndexByte("{}(),;=\"'[]<>|", c) >= 0:
			return s
		case c != ':' && c != '-' || i == 0:
			continue
		}
		rest := s[i+1:]
		if n := stripListNumber(nil, rest); isStamped(n) {
			return n
		}
	}
	return s
}

// isStamped says whether s begins with a time or a kernel's priority.
func isStamped(s string) bool {
	if s == "" {
		return false
	}
	h := head{stamp: unstamped}
	switch s[0] {
	case '[':
		return stripBracket(&h, s) != s && h.stamp.kind != noStamp
	case '<':
		return stripPriority(&h, s) != s
	}
	if _, _, ok := cutISO(s); ok {
		return true
	}
	if _, _, ok := cutNumeric(s); ok {
		return true
	}
	end, ok := syslogEnd(s)
	if !ok {
		return false
	}
	st, ok := readDate(s[:end])
	return ok && st.kind >= partStamp
}
