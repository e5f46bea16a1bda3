// Package units turns base units into text for people, and back: bytes, nanoseconds, rates, ratios. Everything
// inside works in bytes and nanoseconds; this is the one place that knows of KiB, MiB and GiB.
//
// Formatting keeps three significant digits or so: enough to compare two figures, few enough to read. Files and --json
// never go through it.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Sizes of the units that people are shown.
const (
	KiB int64 = 1 << 10
	MiB int64 = 1 << 20
	GiB int64 = 1 << 30
	TiB int64 = 1 << 40
)

// Bytes formats a byte count: 0 B, 812 B, 1.50 KiB, 294.7 GiB. Negative counts (differences) keep their sign.
func Bytes(n int64) string {
	if n > -KiB && n < KiB {
		return strconv.FormatInt(n, 10) + " B"
	}
	return FloatBytes(float64(n))
}

// FloatBytes is Bytes for a computed count; not a number is "?".
func FloatBytes(n float64) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return "?"
	}
	size := math.Abs(n)
	names := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	// 1023.96 KiB would print as 1024.0 KiB: the next unit begins where rounding reaches it.
	for size >= 1023.95 && i < len(names)-1 {
		size /= 1024
		i++
	}
	return sign(n) + digits(size) + " " + names[i]
}

// SignedBytes is Bytes with a sign in front of growth too: +1.50 GiB, -64 B, 0 B.
func SignedBytes(n int64) string {
	if n > 0 {
		return "+" + Bytes(n)
	}
	return Bytes(n)
}

// Nanos formats a duration in nanoseconds: 17 ns, 1.20 µs, 39.9 s, 2 m 05 s, 3 h 07 m.
func Nanos(ns int64) string {
	if ns == math.MinInt64 { // has no positive counterpart
		return "?"
	}
	mark, n := sign(float64(ns)), max(ns, -ns)
	switch {
	case n < 1000:
		return mark + strconv.FormatInt(n, 10) + " ns"
	case n < 999_500:
		return mark + digits(float64(n)/1e3) + " µs"
	case n < 999_500_000:
		return mark + digits(float64(n)/1e6) + " ms"
	case n < 119_500_000_000:
		return mark + digits(float64(n)/1e9) + " s"
	case n < int64(time.Hour-time.Second/2):
		s := (n + 5e8) / 1e9
		return fmt.Sprintf("%s%d m %02d s", mark, s/60, s%60)
	}
	m := (n + 3e10) / 6e10
	return fmt.Sprintf("%s%d h %02d m", mark, m/60, m%60)
}

// Duration is Nanos for a time.Duration.
func Duration(d time.Duration) string { return Nanos(int64(d)) }

// Count formats a number of things with thousands apart: 1,273,284.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	mark := ""
	if text[0] == '-' {
		mark, text = "-", text[1:]
	}
	var b strings.Builder
	for i, c := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return mark + b.String()
}

// Rate formats events over a span of time: 35.1 M/s, 812 /s; "?" where no time passed.
func Rate(count, ns int64) string {
	if ns <= 0 {
		return "?"
	}
	r := float64(count) / float64(ns) * 1e9
	names := []string{"", "k", "M", "G"}
	i := 0
	for math.Abs(r) >= 999.5 && i < len(names)-1 {
		r /= 1000
		i++
	}
	return digits(r) + " " + names[i] + "/s"
}

// ByteRate formats bytes over a span of time: 1.50 GiB/s; "?" where no time passed.
func ByteRate(bytes, ns int64) string {
	if ns <= 0 {
		return "?"
	}
	return FloatBytes(float64(bytes)/float64(ns)*1e9) + "/s"
}

// Percent formats a ratio as a percentage with one decimal: 0.978 is 97.8 %; not a number is "?".
func Percent(ratio float64) string {
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return "?"
	}
	text := strconv.FormatFloat(ratio*100, 'f', 1, 64)
	if text == "-0.0" {
		text = "0.0"
	}
	return text + " %"
}

// SignedPercent is Percent with a sign in front of growth too: +1.2 %.
func SignedPercent(ratio float64) string {
	text := Percent(ratio)
	if ratio > 0 && text != "0.0 %" && text != "?" {
		return "+" + text
	}
	return text
}

// digits writes a number with three significant digits at least, and one decimal at least below 1000.
func digits(f float64) string {
	decimals := 1
	if math.Abs(f) < 9.995 {
		decimals = 2
	}
	text := strconv.FormatFloat(f, 'f', decimals, 64)
	return text
}

func sign(f float64) string {
	if f < 0 {
		return "-"
	}
	return ""
}

// ParseBytes reads a byte count: a plain number of bytes, or one with KiB, MiB, GiB, TiB (powers of 1024) or KB, MB,
// GB, TB (powers of 1000); case does not matter, nor does a blank before the unit. It is the inverse of Bytes up to Bytes'
// rounding.
func ParseBytes(text string) (int64, error) {
	t := strings.TrimSpace(text)
	i := strings.LastIndexAny(t, "0123456789.") + 1
	unit, ok := scale[strings.ToLower(strings.TrimSpace(t[i:]))]
	if !ok {
		return 0, badBytes(text)
	}
	if n, err := strconv.ParseInt(t[:i], 10, 64); err == nil {
		if n < 0 || n > math.MaxInt64/unit {
			return 0, badBytes(text)
		}
		return n * unit, nil // exact, where a float would round above 2^53
	}
	f, err := strconv.ParseFloat(t[:i], 64)
	if bytes := f * float64(unit); err == nil && f >= 0 && bytes < math.MaxInt64 {
		return int64(math.Round(bytes)), nil
	}
	return 0, badBytes(text)
}

func badBytes(text string) error {
	return fmt.Errorf("%q is no byte count: write 1073741824, 512MiB or 1.5GiB", text)
}

var scale = map[string]int64{
	"": 1, "b": 1,
	"kib": KiB, "mib": MiB, "gib": GiB, "tib": TiB, "pib": 1 << 50,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15,
}
