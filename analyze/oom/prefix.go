package oom

import (
	"strings"
)

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
	add(digits, stripListNumber, stripKmsg, stripISO, stripUnix, stripLogcat)
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
	end, ok := syslogEnd(s)
	if !ok {
		return false
	}
	st, ok := readDate(s[:end])
	return ok && st.kind >= partStamp
}

// cutSyslog5424 takes "1 2024-04-29T14:55:41.678Z HOST APP PROCID MSGID DATA " behind a priority.
func (h *head) cutSyslog5424(s string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(s, "1 ")
	if !ok {
		return s, false
	}
	st, rest, ok := cutISO(rest)
	if !ok {
		return s, false
	}
	var words [4]string
	for i := range words {
		if words[i], rest, ok = strings.Cut(strings.TrimPrefix(rest, " "), " "); !ok {
			return s, false
		}
	}
	switch {
	case strings.HasPrefix(rest, "- "):
		rest = rest[2:]
	case strings.HasPrefix(rest, "["):
		if i := strings.Index(rest, "] "); i >= 0 {
			rest = rest[i+2:]
		}
	}
	h.wall(st)
	if words[0] != "-" && h.host == "" {
		h.host = words[0]
	}
	if words[1] != "-" {
		h.tag = words[1]
	}
	return strings.TrimPrefix(rest, "\ufeff"), true
}

// stripPriority takes <4>, with the header of RFC 5424 where one follows.
func stripPriority(h *head, s string) string {
	t := strings.TrimLeft(s, " \t")
	if !strings.HasPrefix(t, "<") {
		return s
	}
	if _, rest, ok := cutDigits(t[1:], 1, 3); ok && strings.HasPrefix(rest, ">") {
		if message, ok := h.cutSyslog5424(rest[1:]); ok {
			return message
		}
		return rest[1:]
	}
	return s
}

// stripKmsg takes "4,1234,5678901234,-;" of /dev/kmsg, whose third number is µs since boot.
func stripKmsg(h *head, s string) string {
	_, r, ok := cutDigits(s, 1, 3)
	if !ok || !strings.HasPrefix(r, ",") {
		return s
	}
	_, r, ok = cutDigits(r[1:], 1, 20)
	if !ok || !strings.HasPrefix(r, ",") {
		return s
	}
	us, r, ok := cutDigits(r[1:], 1, 15)
	semicolon := strings.IndexByte(r, ';')
	if !ok || semicolon < 0 || semicolon > 40 {
		return s
	}
	h.boot(atoi(us) * 1000)
	return r[semicolon+1:]
}

// boot notes a time since boot.
func (h *head) boot(ns int64) {
	h.stamp.boot = ns
	if h.stamp.kind == noStamp {
		h.stamp.kind = bootStamp
	}
}

// wall notes a date and time; the first one of a line counts, but one with a zone counts more.
func (h *head) wall(st stamp) {
	if h.stamp.kind >= st.kind {
		return
	}
	st.boot = h.stamp.boot
	h.stamp = st
}

// stripBracket takes [ 12345.678901], [Mon Sep  7 15:49:31 2020], [T1234], [pod/name/container].
func stripBracket(h *head, s string) string {
	t := strings.TrimLeft(s, " \t")
	end := strings.IndexByte(t, ']')
	if end < 2 || end > 96 || t[0] != '[' {
		return s
	}
	inside, rest := t[1:end], t[end+1:]
	if ns, ok := readBoot(inside); ok {
		h.boot(ns)
		return trimOne(rest)
	}
	if isCaller(inside) || isDelta(inside) || strings.HasPrefix(inside, "pod/") {
		return trimOne(rest)
	}
	if st, after, ok := cutISO(inside); ok && strings.TrimSpace(after) == "" {
		h.wall(st)
		return trimOne(rest)
	}
	if st, ok := readShortDate(inside); ok {
		h.wall(st)
		return trimOne(rest)
	}
	if strings.Count(inside, ":") >= 2 {
		if st, ok := readDate(inside); ok {
			h.wall(st)
			return trimOne(rest)
		}
	}
	return s
}

// isCaller says whether a bracket holds CONFIG_PRINTK_CALLER's T1234 or C3.
func isCaller(inside string) bool {
	inside = strings.TrimSpace(inside)
	if len(inside) < 2 || inside[0] != 'T' && inside[0] != 'C' {
		return false
	}
	_, rest, ok := cutDigits(inside[1:], 1, 10)
	return ok && rest == ""
}

// isDelta says whether a bracket holds the time since the line before: "  +0.000012" of dmesg -H,
// "<    0.000012>" of dmesg -d.
func isDelta(inside string) bool {
	t := strings.TrimLeft(inside, " ")
	after, delta := strings.CutPrefix(t, "+")
	if !delta {
		if after, delta = strings.CutPrefix(t, "<"); delta {
			after, delta = strings.CutSuffix(after, ">")
		}
	}
	_, ok := readBoot(after)
	return delta && ok
}

func trimOne(s string) string { return strings.TrimPrefix(s, " ") }

// stripISO takes an ISO date, with a weekday before it where journald writes one.
func stripISO(h *head, s string) string {
	t := strings.TrimLeft(s, " \t")
	if st, rest, ok := cutISO(t); ok {
		h.wall(st)
		return trimOne(rest)
	}
	if i := strings.IndexByte(t, ' '); i >= 2 && i <= 10 && dateWord(t[:i]) {
		if st, rest, ok := cutISO(t[i+1:]); ok {
			h.wall(st)
			return trimOne(rest)
		}
	}
	return s
}

// stripUnix takes 1714395341.678628, seconds since 1970.
func stripUnix(h *head, s string) string {
	sec, rest, ok := cutDigits(s, 10, 10)
	if !ok || !strings.HasPrefix(rest, ".") {
		return s
	}
	frac, rest, ok := cutDigits(rest[1:], 3, 9)
	if !ok || !strings.HasPrefix(rest, " ") {
		return s
	}
	h.wall(unixStamp(atoi(sec)*1e9+atoi((frac + "000000000")[:9]), len(frac)))
	return rest[1:]
}

// stripFacility takes "kern  :warn  : " of dmesg -x.
func stripFacility(_ *head, s string) string {
	word := func(s string) (string, bool) {
		n := 0
		for n < len(s) && 'a' <= s[n] && s[n] <= 'z' {
			n++
		}
		rest := strings.TrimLeft(s[n:], " ")
		return strings.TrimPrefix(rest, ":"), n >= 3 && n <= 8 && strings.HasPrefix(rest, ":")
	}
	if !strings.HasPrefix(s, "kern") {
		return s
	}
	if rest, ok := word(s); ok {
		if rest, ok = word(rest); ok {
			return trimOne(rest)
		}
	}
	return s
}

// stripSyslog takes "Sep  7 15:49:31 ", in any language.
func stripSyslog(h *head, s string) string {
	end, ok := syslogEnd(s)
	if !ok {
		return s
	}
	text := s[:end]
	if m := h.memo; m != nil && m.text == text {
		h.wall(m.at)
	} else {
		st, ok := readDate(text)
		if !ok {
			return s
		}
		h.wall(st)
		if m != nil {
			m.text, m.at = strings.Clone(text), st
			m.at.text = strings.TrimSpace(m.text)
		}
	}
	_, _, rest := cutZone(s[end:])
	return trimOne(rest)
}

// stripLogcat takes "04-29 14:55:41.678  1234  1234 I ".
func stripLogcat(h *head, s string) string {
	month, r, ok := cutDigits(s, 2, 2)
	if !ok || !strings.HasPrefix(r, "-") {
		return s
	}
	day, r, ok := cutDigits(r[1:], 2, 2)
	if !ok || !strings.HasPrefix(r, " ") {
		return s
	}
	c, rest, ok := cutClock(r[1:])
	if !ok || !strings.HasPrefix(rest, " ") {
		return s
	}
	st := makeStamp(date{0, monthNumber(month), int(atoi(day))}, c, nil)
	st.text = strings.TrimSpace(s[:len(s)-len(rest)])
	h.wall(st)
	for range 2 {
		if _, after, ok := cutDigits(strings.TrimLeft(rest, " "), 1, 7); ok {
			rest = after
		}
	}
	rest = strings.TrimLeft(rest, " ")
	if len(rest) > 2 && rest[1] == ' ' {
		rest = rest[2:]
	}
	return rest
}

// stripKlog takes "I0429 14:55:41.678628   12345 file.go:12] " of Kubernetes' components.
func stripKlog(h *head, s string) string {
	if len(s) < 20 || strings.IndexByte("IWEF", s[0]) < 0 {
		return s
	}
	day, r, ok := cutDigits(s[1:], 4, 4)
	if !ok || !strings.HasPrefix(r, " ") {
		return s
	}
	c, rest, ok := cutClock(r[1:])
	end := strings.IndexByte(rest, ']')
	if !ok || end < 0 || end > 80 {
		return s
	}
	st := makeStamp(date{0, monthNumber(day[:2]), int(atoi(day[2:]))}, c, nil)
	st.text = s[:len(s)-len(rest)]
	h.wall(st)
	return trimOne(rest[end+1:])
}

// stripStream takes "stdout F " of a container runtime's log.
func stripStream(_ *head, s string) string {
	for _, p := range []string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
		if strings.HasPrefix(s, p) {
			return s[len(p):]
		}
	}
	return s
}

// tags are programs whose name may stand before a message without a pid behind it.
var tags = map[string]bool{
	"kernel": true, "systemd": true, "systemd-oomd": true, "earlyoom": true, "dockerd": true,
	"containerd": true, "kubelet": true, "k3s": true, "lmkd": true, "lowmemorykiller": true,
	"nohang": true, "slurmstepd": true, "slurmd": true, "serialport": true,
}

// stripTag takes "HOST kernel: ", "kernel: ", "HOST systemd-oomd[666]: " and the like.
func stripTag(h *head, s string) string {
	t := strings.TrimLeft(s, " ")
	if tag, rest, ok := cutTag(t); ok {
		h.tag = tag
		return rest
	}
	if strings.HasPrefix(t, ": ") {
		return t[2:]
	}
	i := strings.IndexByte(t, ' ')
	if i < 1 || i > 64 || t[0] == '[' {
		return s
	}
	tag, rest, ok := cutTag(t[i+1:])
	if !ok {
		return s
	}
	h.tag = tag
	if host := t[:i]; strings.Trim(host, ".…") != "" && h.host == "" && h.stamp.kind != noStamp {
		h.host = host
	}
	return rest
}

// cutTag takes "name[pid]: ", or "name: " of a known program.
func cutTag(s string) (tag, rest string, ok bool) {
	n := 0
	for n < len(s) && n < 40 && tagByte(s[n]) {
		n++
	}
	tag, rest = s[:n], s[n:]
	if n == 0 {
		return "", s, false
	}
	known := tags[strings.ToLower(tag)]
	if strings.HasPrefix(rest, "[") {
		_, after, digits := cutDigits(rest[1:], 1, 10)
		if !digits || !strings.HasPrefix(after, "]") {
			return "", s, false
		}
		rest, known = after[1:], true
	}
	if !known || !strings.HasPrefix(rest, ":") || len(rest) > 1 && rest[1] != ' ' {
		return "", s, false
	}
	return tag, trimOne(rest[1:]), true
}

func tagByte(c byte) bool {
	return 'a' <= lower[c] && lower[c] <= 'z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '/' || c == '@' || c == '(' || c == ')'
}

// stripPipe takes "prover_1  | " of docker compose, and a Markdown table's first bar.
func stripPipe(_ *head, s string) string {
	t := strings.TrimLeft(s, " \t")
	if strings.HasPrefix(t, "| ") {
		return t[2:]
	}
	i := strings.Index(s, " | ")
	if i < 1 || i > 48 || strings.ContainsAny(strings.TrimSpace(s[:i]), " :[(=") {
		return s
	}
	return s[i+3:]
}
