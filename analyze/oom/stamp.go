package oom

import (
	"fmt"
	"strconv"
	"strings"
	"time"
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

// in is the stamp with its zone known.
func (s stamp) in(zone *time.Location, name string) stamp {
	y, m, d := s.wall.Date()
	hour, minute, second := s.wall.Clock()
	s.wall = time.Date(y, m, d, hour, minute, second, s.wall.Nanosecond(), zone)
	s.kind, s.zone = zoneStamp, name
	return s
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
