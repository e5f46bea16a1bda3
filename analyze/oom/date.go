package oom

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

type date struct {
	year  int // 0 where not given
	month time.Month
	day   int
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
		if pm, half := halfDay(w); half && found {
			c.half(pm)
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
// fraction, with the year behind it ("Dec 27 09:19:05 2013") or before the time ("Sep 7, 2020 3:49:31
// PM", Kibana's "Sep 7, 2020 @ 15:49:31.000"), or a weekday before ("Mon Sep 7 15:49:31 2020").
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
			_, _, after = cutHalf(after)
			if y, r, four := cutDigits(strings.TrimLeft(after, " "), 4, 4); four &&
				isYear(y) && strings.HasPrefix(r, " ") {
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

// dateWord says whether w may be a weekday, a month, a day or a year.
func dateWord(w string) bool {
	if w == "@" || isYear(strings.TrimSuffix(w, ",")) {
		return true
	}
	if _, rest, ok := cutDigits(w, 1, 2); ok {
		return rest == "" || rest == "." || rest == "," || rest == "月" || rest == "日" || rest == "월"
	}
	for i, r := range w {
		if !unicode.IsLetter(r) && (r != '.' && r != ',' || i == 0) {
			return false
		}
	}
	return utf8.ValidString(w)
}

// isYear says whether w is a year that a log may be of.
func isYear(w string) bool {
	_, rest, ok := cutDigits(w, 4, 4)
	return ok && rest == "" && w >= "1990" && w < "2100"
}
