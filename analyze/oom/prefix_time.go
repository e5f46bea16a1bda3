package oom

import "strings"

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
	if st, after, ok := cutNumeric(inside); ok && strings.TrimSpace(after) == "" {
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

// stripNumeric takes "9/29/2020, 3:49:31 PM ".
func stripNumeric(h *head, s string) string {
	st, rest, ok := cutNumeric(strings.TrimLeft(s, " \t"))
	if !ok {
		return s
	}
	h.wall(st)
	return trimOne(rest)
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

// stripSyslog takes "Sep  7 15:49:31 ", in any language, with a zone where one follows.
func stripSyslog(h *head, s string) string {
	end, ok := syslogEnd(s)
	if !ok {
		return s
	}
	st, ok := h.memo.read(s[:end])
	if !ok {
		return s
	}
	zone, name, rest := cutZone(s[end:])
	if zone != nil && st.kind == wallStamp {
		st = st.in(zone, name)
	}
	h.wall(st)
	return trimOne(rest)
}

// read reads the date text, which the line before may have had too. m may be nil.
func (m *dateMemo) read(text string) (st stamp, ok bool) {
	if m != nil && m.text == text {
		return m.at, true
	}
	if st, ok = readDate(text); ok && m != nil {
		m.text, m.at = strings.Clone(text), st
		m.at.text = strings.TrimSpace(m.text)
	}
	return st, ok
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
