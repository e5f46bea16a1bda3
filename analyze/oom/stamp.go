package oom

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// stampKind says how much of a moment a stamp tells.
type stampKind uint8

const (
	noStamp   stampKind = iota
	bootStamp           // seconds since boot only
	textStamp           // a date that could not be read
	partStamp           // no year
	wallStamp           // date and time, no zone
	zoneStamp           // date, time and zone
)

var stampWords = map[stampKind]Text{
	bootStamp: "boot", textStamp: "text", partStamp: "partial", wallStamp: "local",
	zoneStamp: "zoned",
}

// stamp is a moment as a line gives it. The wall time is taken as UTC where no zone is given, and
// in the year 2000 where no year is: good enough to order lines of one text.
type stamp struct {
	kind   stampKind
	wall   time.Time
	zone   string // as written, "" where there is none
	digits int    // of the fraction of a second
	text   string // as written
	boot   int64  // ns since boot; -1 where not given
}

var unstamped = stamp{boot: -1}

// before says whether s is known to be earlier than o, or later: -1, 1, or 0 for neither.
func (s *stamp) compare(o *stamp) int {
	switch {
	case s.boot >= 0 && o.boot >= 0:
		return sign64(s.boot - o.boot)
	case s.kind >= partStamp && o.kind >= partStamp:
		return s.wall.Compare(o.wall)
	}
	return 0
}

func sign64(n int64) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// since is how long s is after o; ok is false where the stamps do not tell.
func (s *stamp) since(o *stamp) (ns int64, ok bool) {
	switch {
	case s.boot >= 0 && o.boot >= 0:
		return s.boot - o.boot, true
	case s.kind >= partStamp && o.kind >= partStamp:
		return int64(s.wall.Sub(o.wall)), true
	}
	return 0, false
}

// String is the moment as Event.Time gives it.
func (s *stamp) String() string {
	switch s.kind {
	case zoneStamp, wallStamp:
		layout := "2006-01-02T15:04:05"
		if s.digits > 0 {
			layout += "." + strings.Repeat("0", min(s.digits, 9))
		}
		if s.kind == wallStamp {
			return s.wall.Format(layout)
		}
		return s.wall.Format(layout + "Z07:00")
	case partStamp, textStamp:
		return s.text
	case bootStamp:
		return fmt.Sprintf("%d.%06d", s.boot/1e9, s.boot%1e9/1e3)
	}
	return ""
}

// cutDigits takes digits off the front of s, at least least and at most most of them.
func cutDigits(s string, least, most int) (digits, rest string, ok bool) {
	n := 0
	for n < len(s) && n < most && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return s[:n], s[n:], n >= least
}

// clock is a time of day at the front of a text.
type clock struct {
	hour, minute, second, nanos, digits int
}

// cutClock takes 15:04:05 with a fraction behind '.' or ',' off the front of s.
func cutClock(s string) (c clock, rest string, ok bool) {
	var part [3]int
	rest = s
	for i := range part {
		var d string
		if d, rest, ok = cutDigits(rest, 2-firstOf(i), 2); !ok {
			return c, s, false
		}
		part[i], _ = strconv.Atoi(d)
		if i == 2 {
			break
		}
		if !strings.HasPrefix(rest, ":") {
			return c, s, false
		}
		rest = rest[1:]
	}
	c.hour, c.minute, c.second = part[0], part[1], part[2]
	if c.hour > 23 || c.minute > 59 || c.second > 60 {
		return c, s, false
	}
	if len(rest) > 1 && (rest[0] == '.' || rest[0] == ',') {
		if d, after, ok := cutDigits(rest[1:], 1, 12); ok {
			c.digits = min(len(d), 9)
			c.nanos, _ = strconv.Atoi((d + "000000000")[:9])
			rest = after
		}
	}
	return c, rest, true
}

// firstOf is 1 for the hour, which may have one digit.
func firstOf(i int) int {
	if i == 0 {
		return 1
	}
	return 0
}

// cutZone takes Z, +02:00, +0200, UTC or CEST off the front of s. Only the first four are known
// offsets; a name is kept apart.
func cutZone(s string) (zone *time.Location, name, rest string) {
	t := strings.TrimPrefix(s, " ")
	switch {
	case strings.HasPrefix(s, "Z"):
		return time.UTC, "Z", s[1:]
	case strings.HasPrefix(t, "UTC"), strings.HasPrefix(t, "GMT"):
		return time.UTC, t[:3], t[3:]
	case len(t) > 4 && (t[0] == '+' || t[0] == '-'):
		h, after, ok := cutDigits(t[1:], 2, 2)
		m, after, ok2 := cutDigits(strings.TrimPrefix(after, ":"), 2, 2)
		if ok && ok2 {
			hours, _ := strconv.Atoi(h)
			minutes, _ := strconv.Atoi(m)
			offset := (hours*60 + minutes) * 60
			if t[0] == '-' {
				offset = -offset
			}
			return time.FixedZone("", offset), t[:len(t)-len(after)], after
		}
	}
	n := 0
	for n < len(t) && 'A' <= t[n] && t[n] <= 'Z' {
		n++
	}
	if t != s && n >= 3 && n <= 5 && n < len(t) && t[n] == ' ' {
		return nil, t[:n], t[n:]
	}
	return nil, "", s
}

// cutISO takes 2024-04-29T14:55:41,678628+02:00, with any of its optional parts, off the front.
func cutISO(s string) (st stamp, rest string, ok bool) {
	y, r, ok1 := cutDigits(s, 4, 4)
	if !ok1 || len(r) == 0 || r[0] != '-' && r[0] != '/' {
		return st, s, false
	}
	mo, r, ok2 := cutDigits(r[1:], 2, 2)
	if !ok2 || len(r) == 0 || r[0] != '-' && r[0] != '/' {
		return st, s, false
	}
	d, r, ok3 := cutDigits(r[1:], 2, 2)
	if !ok3 || len(r) == 0 || r[0] != 'T' && r[0] != ' ' && r[0] != '_' {
		return st, s, false
	}
	c, r, ok4 := cutClock(strings.TrimLeft(r[1:], " "))
	if !ok4 {
		return st, s, false
	}
	zone, name, r := cutZone(r)
	year, _ := strconv.Atoi(y)
	month, _ := strconv.Atoi(mo)
	day, _ := strconv.Atoi(d)
	st = makeStamp(date{year, time.Month(month), day}, c, zone)
	st.zone, st.text = name, strings.TrimSpace(s[:len(s)-len(r)])
	return st, r, st.kind != noStamp
}

type date struct {
	year  int // 0 where not given
	month time.Month
	day   int
}

// makeStamp is the stamp of a date and a time; without kind where there is no such date.
func makeStamp(d date, c clock, zone *time.Location) stamp {
	if d.month < 1 || d.month > 12 || d.day < 1 || d.day > 31 {
		return unstamped
	}
	st := stamp{kind: wallStamp, boot: -1, digits: c.digits}
	where := time.UTC
	if zone != nil {
		st.kind, where = zoneStamp, zone
	}
	year := d.year
	if year == 0 {
		st.kind, year = partStamp, 2000
	}
	st.wall = time.Date(year, d.month, d.day, c.hour, c.minute, c.second, c.nanos, where)
	return st
}

// readDate reads a date with a time in the words of any locale, such as dmesg -T and syslog write:
// "月  1月 26 01:49:41 2026", "mars 27 18:46:05", "Mon Sep  7 15:49:31 2020". What is not
// understood is kept as text.
func readDate(s string) (st stamp, ok bool) {
	var d date
	var c clock
	found := false
	for w := range strings.FieldsSeq(s) {
		if t, rest, isClock := cutClock(w); isClock && !found && len(rest) < 7 {
			c, found = t, true
			continue
		}
		if found && (w == "PM" || w == "AM") && c.hour >= 1 && c.hour <= 12 {
			c.hour %= 12
			if w == "PM" {
				c.hour += 12
			}
			continue
		}
		d.word(w)
	}
	if !found {
		return unstamped, false
	}
	st = makeStamp(d, c, nil)
	if st.kind == noStamp {
		st = stamp{kind: textStamp, boot: -1}
	}
	st.text = strings.TrimSpace(s)
	return st, true
}

// readShortDate reads the inside of [Mar15 10:11], which dmesg -H and --reltime write where a minute
// begins; the lines behind it have what has passed since, such as [  +0.000012].
func readShortDate(s string) (st stamp, ok bool) {
	day, minute, ok := strings.Cut(strings.TrimSpace(s), " ")
	n := strings.IndexAny(day, "0123456789")
	if !ok || n < 2 || len(minute) != len("15:04") {
		return unstamped, false
	}
	d, rest, ok := cutDigits(day[n:], 1, 2)
	c, _, isClock := cutClock(minute + ":00")
	month := monthOf(day[:n])
	if !ok || rest != "" || !isClock || month == 0 {
		return unstamped, false
	}
	st = makeStamp(date{0, month, int(atoi(d))}, c, nil)
	st.text = strings.TrimSpace(s)
	return st, st.kind != noStamp
}

// word takes one word of a date: year, day, or month.
func (d *date) word(w string) {
	w = strings.Trim(w, ".,")
	if n, err := strconv.Atoi(strings.TrimSuffix(w, "日")); err == nil {
		switch {
		case n >= 1970 && n < 10000:
			d.year = n
		case n >= 1 && n <= 31 && d.day == 0:
			d.day = n
		}
		return
	}
	// The last word counts: a weekday that looks like a month ("mar.") comes first.
	if m := monthOf(w); m != 0 {
		d.month = m
	}
}

// monthOf reads a month's name or its usual abbreviation; 0 where it is none.
func monthOf(w string) time.Month {
	if n, rest, ok := cutDigits(w, 1, 2); ok && (rest == "月" || rest == "월") {
		m, _ := strconv.Atoi(n)
		return time.Month(m)
	}
	w = strings.ToLower(w)
	for m, names := range months {
		for _, name := range names {
			if strings.HasPrefix(w, name) {
				return time.Month(m + 1)
			}
		}
	}
	return 0
}

// months are beginnings of month names, in the languages that people's servers speak. Longer ones
// come first where one begins another.
var months = [12][]string{
	{"jan", "ene", "gen", "янв", "sty", "tam", "led", "oca", "ιαν"},
	{"feb", "fév", "fev", "фев", "lut", "hel", "úno", "şub", "φεβ"},
	{"mar", "mär", "maa", "мар", "bře", "mrt", "μαρ"},
	{"apr", "avr", "abr", "апр", "kwi", "huh", "dub", "nis", "απρ"},
	{"may", "mai", "maj", "mag", "мая", "май", "tou", "kvě", "mei", "μαΐ"},
	{"jun", "juin", "giu", "июн", "cze", "kes", "haz", "ιουν"},
	{"jul", "juil", "lug", "июл", "lip", "hei", "tem", "ιουλ"},
	{"aug", "aoû", "aou", "ago", "авг", "sie", "elo", "srp", "ağu", "αυγ"},
	{"sep", "set", "сен", "wrz", "syy", "zář", "eyl", "σεπ"},
	{"oct", "okt", "ott", "out", "окт", "paź", "lok", "říj", "eki", "οκτ"},
	{"nov", "ноя", "lis", "kas", "νοε"},
	{"dec", "dez", "déc", "dic", "дек", "gru", "jou", "pro", "ara", "δεκ"},
}

// syslogEnd is where a date such as "Sep 7 15:49:31" at the front of s ends: in any locale, with
// fraction, with the year behind it ("Dec 27 09:19:05 2013"), or a weekday before ("Mon Sep 7
// 15:49:31 2020").
func syslogEnd(s string) (end int, ok bool) {
	colon := strings.IndexByte(s[:min(len(s), 48)], ':')
	if colon < 3 || s[colon-1] < '0' || s[colon-1] > '9' {
		return 0, false
	}
	at := 0
	for words := 0; words < 5; words++ {
		for at < len(s) && s[at] == ' ' {
			at++
		}
		if _, after, isClock := cutClock(s[at:]); isClock {
			if words < 2 {
				return 0, false
			}
			if y, r, four := cutDigits(strings.TrimLeft(after, " "), 4, 4); four &&
				y >= "1990" && y < "2100" && strings.HasPrefix(r, " ") {
				after = r
			}
			return len(s) - len(after), true
		}
		n := strings.IndexByte(s[at:min(len(s), at+13)], ' ')
		if n < 1 || !dateWord(s[at:at+n]) {
			return 0, false
		}
		at += n
	}
	return 0, false
}

// dateWord says whether w may be a weekday, a month or a day.
func dateWord(w string) bool {
	if _, rest, ok := cutDigits(w, 1, 2); ok {
		return rest == "" || rest == "." || rest == "月" || rest == "日" || rest == "월"
	}
	for i, r := range w {
		if !unicode.IsLetter(r) && (r != '.' && r != ',' || i == 0) {
			return false
		}
	}
	return utf8.ValidString(w)
}

// readBoot reads the inside of [ 12345.678901] or [12345.678901 <    0.000010>].
func readBoot(s string) (ns int64, ok bool) {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "<")
	sec, rest, ok := cutDigits(strings.TrimSpace(s), 1, 9)
	if !ok || len(rest) < 2 || rest[0] != '.' {
		return 0, false
	}
	frac, rest, ok := cutDigits(rest[1:], 1, 9)
	if !ok || strings.TrimSpace(rest) != "" {
		return 0, false
	}
	seconds, _ := strconv.ParseInt(sec, 10, 64)
	nanos, _ := strconv.ParseInt((frac + "000000000")[:9], 10, 64)
	return seconds*1e9 + nanos, true
}
