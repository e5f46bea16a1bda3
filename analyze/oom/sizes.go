package oom

import (
	"strconv"
	"strings"
)

// sizeUnits are units by how they are written, in any case; those without an i are powers of 1024
// where the programs that write them mean it so (kB of the kernel, M of free, MB of the V8 heap),
// else of 1000.
var sizeUnits = []struct {
	unit  string
	bytes float64
}{
	{"bytes", 1}, {"byte", 1},
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"ki", 1 << 10}, {"mi", 1 << 20}, {"gi", 1 << 30}, {"ti", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40},
	{"b", 1},
}

// cutSize reads a size at the front of s: 8606711792 bytes, 12.0 GiB, 4194304-byte, 461239222272.
func cutSize(s string) (bytes int64, ok bool) {
	s = strings.TrimLeft(s, " :=(\"")
	n := 0
	for n < len(s) && ('0' <= s[n] && s[n] <= '9' || s[n] == '.' || s[n] == ',' && n+1 < len(s) &&
		'0' <= s[n+1] && s[n+1] <= '9') {
		n++
	}
	number := strings.ReplaceAll(strings.TrimRight(s[:n], "."), ",", "")
	if number == "" {
		return 0, false
	}
	rest := strings.TrimLeft(s[n:], " -")
	factor := unitOf(rest)
	if whole, err := strconv.ParseUint(number, 10, 64); err == nil && factor == 1 {
		return int64(min(whole, 1<<63-1)), true
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f < 0 {
		return 0, false
	}
	if f *= factor; f >= 1<<62 {
		return 1<<63 - 1, true
	}
	return int64(f + 0.5), true
}

// unitOf is the unit at the front of s, bytes where there is none.
func unitOf(s string) float64 {
	n := 0
	for n < len(s) && 'a' <= lower[s[n]] && lower[s[n]] <= 'z' {
		n++
	}
	for _, u := range sizeUnits {
		if strings.EqualFold(s[:n], u.unit) {
			return u.bytes
		}
	}
	return 1
}

// quantity reads a Kubernetes quantity: 4Gi, 512Mi, 1G, 4294967296.
func quantity(s string) (bytes int64, ok bool) {
	s = strings.Trim(s, "\"', ")
	n := 0
	for n < len(s) && ('0' <= s[n] && s[n] <= '9' || s[n] == '.') {
		n++
	}
	f, err := strconv.ParseFloat(s[:n], 64)
	if err != nil {
		return 0, false
	}
	factor := 1.0
	switch unit := s[n:]; unit {
	case "":
	case "k", "M", "G", "T":
		factor = map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[unit]
	default:
		if factor = unitOf(unit); factor == 1 {
			return 0, false
		}
	}
	if f *= factor; f >= 1<<62 {
		return 0, false
	}
	return int64(f), true
}
