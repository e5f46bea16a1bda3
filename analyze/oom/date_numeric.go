package oom

import (
	"fmt"
	"strings"
	"time"
)

// cutNumericDate takes a date in numbers alone off the front of s: 9/7/2020, 07.09.2020, 04/29/24.
// sure says that there is one way to read it:
//
//  1. The last number is the year.
//  2. Behind dots the day comes first: nobody writes the month first there.
//  3. Else a number above 12 is the day, and two equal ones are both. A year of two digits might
//     stand first, so that only a day in the middle is sure then.
//  4. What is left are two dates. AM or PM behind the time does not tell which: the US and
//     Australia both write so.
//
// Where it is not sure, d is the month-first reading.
func cutNumericDate(s string) (d date, sure bool, rest string, ok bool) {
	var n [3]int
	var sign byte
	rest = s
	short := false
	for i := range n {
		var digits string
		if digits, rest, ok = cutDigits(rest, 1, 2+2*(i/2)); !ok {
			return d, false, s, false
		}
		n[i] = int(atoi(digits))
		if i == 2 {
			short = len(digits) == 2
			ok = short || isYear(digits)
			break
		}
		if rest == "" || strings.IndexByte("/.-", rest[0]) < 0 || i == 1 && rest[0] != sign {
			return d, false, s, false
		}
		sign, rest = rest[0], rest[1:]
	}
	d = date{year: n[2], month: time.Month(n[0]), day: n[1]}
	if short {
		d.year += 2000
	}
	switch {
	case sign == '.', n[0] > 12:
		d.month, d.day = time.Month(n[1]), n[0]
		sure = sign == '.' || !short
	case n[1] > 12:
		sure = true
	default:
		sure = n[0] == n[1] && !short
	}
	if !ok || d.month < 1 || d.month > 12 || d.day < 1 || d.day > 31 {
		return d, false, s, false
	}
	return d, sure, rest, true
}

// cutNamedDate takes 29/Apr/2024 or 29-Apr-2024 off the front of s.
func cutNamedDate(s string) (d date, rest string, ok bool) {
	day, rest, ok := cutDigits(s, 1, 2)
	if !ok || rest == "" || rest[0] != '/' && rest[0] != '-' {
		return d, s, false
	}
	month, year, ok := strings.Cut(rest[1:min(len(rest), 24)], rest[:1])
	if !ok || len(month) < 3 {
		return d, s, false
	}
	y, _, ok := cutDigits(year, 4, 4)
	d = date{int(atoi(y)), monthOf(month), int(atoi(day))}
	return d, rest[1+len(month)+1+len(y):], ok && isYear(y) && d.month != 0
}

// cutNumeric takes a date of numbers (or 29/Apr/2024) with its time off the front of s: "9/29/2020,
// 3:49:31 PM". One that can be read in two ways is kept as text.
func cutNumeric(s string) (st stamp, rest string, ok bool) {
	d, r, sure := cutNamedDate(s)
	if ok = sure; !ok {
		d, sure, r, ok = cutNumericDate(s)
	}
	t := strings.TrimLeft(r, " ,@:")
	if !ok || t == r {
		return st, s, false
	}
	c, r, ok := cutClock(t)
	if !ok {
		return st, s, false
	}
	if pm, half, after := cutHalf(r); half {
		c.half(pm)
		r = after
	}
	zone, name, r := cutZone(r)
	st = makeStamp(d, c, zone)
	st.zone, st.text = name, strings.TrimSpace(s[:len(s)-len(r)])
	if st.kind != noStamp && !sure {
		st.kind = textStamp
	}
	return st, r, st.kind != noStamp
}

// doubt says what the stamp can mean besides, where it is text because of that.
func (s *stamp) doubt() string {
	if s.kind != textStamp {
		return ""
	}
	d, sure, _, ok := cutNumericDate(s.text)
	switch {
	case !ok || sure:
		return ""
	case d.day > 12: // the day stands first, or a year of two digits does
		return fmt.Sprintf("The date of %s can begin with the day or with the year: it is kept as "+
			"written.", s.text)
	case d.day == int(d.month):
		return fmt.Sprintf("The date of %s can begin or end with the year: it is kept as "+
			"written.", s.text)
	}
	return fmt.Sprintf("The date of %s can be %d %s or %d %s: it is kept as written.", s.text,
		d.day, d.month, int(d.month), time.Month(d.day))
}

// cutHalf takes AM or PM off the front of s, behind the blank, wide or narrow, that parts it from the
// time.
func cutHalf(s string) (pm, ok bool, rest string) {
	t := strings.TrimLeft(s, " \u00a0\u202f")
	end := strings.IndexFunc(t, func(r rune) bool {
		return r != '.' && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z')
	})
	if end < 0 {
		end = len(t)
	}
	pm, ok = halfDay(t[:end])
	if !ok {
		return false, false, s
	}
	return pm, true, t[end:]
}

// halfDay reads AM, PM, a.m., p.m.
func halfDay(w string) (pm, ok bool) {
	switch w {
	case "AM", "am", "a.m.", "A.M.":
		return false, true
	case "PM", "pm", "p.m.", "P.M.":
		return true, true
	}
	return false, false
}

// half takes the hour as one of twelve; one that is none stays as it is.
func (c *clock) half(pm bool) {
	if c.hour < 1 || c.hour > 12 {
		return
	}
	c.hour %= 12
	if pm {
		c.hour += 12
	}
}
