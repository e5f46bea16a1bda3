package oom

import (
	"strconv"
	"strings"
	"time"
)

// atoi reads a whole number that is known to be digits; what overflows gives the largest.
func atoi(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func monthNumber(s string) time.Month { return time.Month(atoi(s)) }

func unixStamp(ns int64, digits int) stamp {
	st := stamp{kind: zoneStamp, wall: time.Unix(0, ns).UTC(), zone: "Z", digits: digits, boot: -1}
	st.text = st.String()
	return st
}

// cutInt takes a whole number, with a minus sign where there is one, off the front of s.
func cutInt(s string) (n int64, rest string, ok bool) {
	t := strings.TrimPrefix(s, "-")
	digits, rest, ok := cutDigits(t, 1, 20)
	if !ok {
		return 0, s, false
	}
	n, err := strconv.ParseInt(s[:len(s)-len(rest)], 10, 64)
	if err != nil {
		u, err := strconv.ParseUint(digits, 10, 64)
		return int64(min(u, 1<<63-1)), rest, err == nil
	}
	return n, rest, true
}

// intAfter is the whole number that stands behind key in s, blanks aside.
func intAfter(s, key string) (n int64, ok bool) {
	i := indexFold(s, key)
	if i < 0 {
		return 0, false
	}
	n, _, ok = cutInt(strings.TrimLeft(s[i+len(key):], " "))
	return n, ok
}

// wordAfter is what stands behind key in s, up to one of the bytes of stop.
func wordAfter(s, key, stop string) (word string, ok bool) {
	i := strings.Index(s, key)
	if i < 0 {
		return "", false
	}
	word = s[i+len(key):]
	if j := strings.IndexAny(word, stop); j >= 0 {
		word = word[:j]
	}
	return word, true
}

// kbAfter is the size behind key, a number with kB or KB behind it, in bytes.
func kbAfter(s, key string) *int64 {
	n, ok := intAfter(s, key)
	if !ok || n < 0 || n > 1<<52 {
		return nil
	}
	n <<= 10
	return &n
}

// indexFold is strings.Index without regard to the case of ASCII letters.
func indexFold(s, sub string) int {
	if sub == "" {
		return 0
	}
	for i := 0; i+len(sub) <= len(s); i++ {
		if lower[s[i]] == lower[sub[0]] && strings.EqualFold(s[i:i+len(sub)], sub) {
			return i
		}
	}
	return -1
}

func hasFold(s, sub string) bool { return indexFold(s, sub) >= 0 }

// pairs goes through "key:value" and "key: value", as the kernel writes its counters, and gives
// each number with the letters behind it. It stops where yield says false.
func pairs(s string, yield func(key string, n int64, unit string) bool) {
	for {
		colon := strings.IndexByte(s, ':')
		if colon < 0 {
			return
		}
		key := s[:colon]
		if i := strings.LastIndexAny(key, " ,\t"); i >= 0 {
			key = key[i+1:]
		}
		n, rest, ok := cutInt(strings.TrimLeft(s[colon+1:], " "))
		if !ok {
			s = s[colon+1:]
			continue
		}
		u := 0
		for u < len(rest) && 'a' <= lower[rest[u]] && lower[rest[u]] <= 'z' {
			u++
		}
		if key != "" && !yield(key, n, rest[:u]) {
			return
		}
		s = rest[u:]
	}
}

func ptr[T any](v T) *T { return &v }

// sum adds what is known; nil where nothing is.
func sum(parts ...*int64) *int64 {
	var total *int64
	for _, p := range parts {
		if p == nil {
			continue
		}
		if total == nil {
			total = ptr(int64(0))
		}
		*total += *p
	}
	return total
}

// value is the number, 0 where it is not known: for comparing only.
func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// times is pages in bytes; nil where either is not known.
func times(pages int64, page *int64) *int64 {
	if page == nil || pages > (1<<62) / *page || pages < 0 {
		return nil
	}
	return ptr(pages * *page)
}
