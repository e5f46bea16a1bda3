package units

import (
	"math"
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 812: "812 B", -64: "-64 B", 1023: "1023 B", 1024: "1.00 KiB", 1536: "1.50 KiB",
		10 << 10: "10.0 KiB", 1<<20 - 1: "1.00 MiB", 316431663104: "294.7 GiB", -3 << 30: "-3.00 GiB",
		668 << 30: "668.0 GiB", math.MaxInt64: "8.00 EiB", math.MinInt64: "-8.00 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
	if got := SignedBytes(1536); got != "+1.50 KiB" {
		t.Errorf("SignedBytes(1536) = %q", got)
	}
	if got := FloatBytes(math.NaN()); got != "?" {
		t.Errorf("FloatBytes(NaN) = %q", got)
	}
}

func TestNanos(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0 ns", 17: "17 ns", 1200: "1.20 µs", 999_499: "999.5 µs", 999_500: "1.00 ms", 39_900_000_000: "39.9 s",
		-1500: "-1.50 µs", 119_400_000_000: "119.4 s", 125_000_000_000: "2 m 05 s", 3_599_400_000_000: "59 m 59 s",
		3_599_600_000_000: "1 h 00 m", 11_220_000_000_000: "3 h 07 m", math.MinInt64: "?",
	} {
		if got := Nanos(ns); got != want {
			t.Errorf("Nanos(%d) = %q, want %q", ns, got, want)
		}
	}
	if got := Duration(1500 * time.Millisecond); got != "1.50 s" {
		t.Errorf("Duration(1.5 s) = %q", got)
	}
}

func TestCountsAndRates(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Count(0), "0"},
		{Count(999), "999"},
		{Count(1273284), "1,273,284"},
		{Count(-1000), "-1,000"},
		{Count(math.MinInt64), "-9,223,372,036,854,775,808"},
		{Rate(35_100_000, 1e9), "35.1 M/s"},
		{Rate(812, 1e9), "812.0 /s"},
		{Rate(1, 0), "?"},
		{ByteRate(3<<30, 2e9), "1.50 GiB/s"},
		{ByteRate(1, -1), "?"},
		{Percent(0.9782), "97.8 %"},
		{Percent(math.NaN()), "?"},
		{Percent(-0.00001), "0.0 %"},
		{SignedPercent(0.012), "+1.2 %"},
		{SignedPercent(-0.012), "-1.2 %"},
		{SignedPercent(0), "0.0 %"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1073741824": GiB, "512MiB": 512 * MiB, " 1.5 GiB ": 3 * GiB / 2, "2gb": 2e9, "7B": 7,
		"9223372036854775807": math.MaxInt64, "0.5KiB": 512,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1 GiBs", "1e400TiB", "9223372036854775808", "99999999TiB", "1.2.3", "0x10", "NaN"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}

// FuzzParseBytes checks that no text gives a negative count, and that what Bytes prints parses back within its rounding.
func FuzzParseBytes(f *testing.F) {
	for _, seed := range []string{"1", "512MiB", "1.5 GiB", "1e3kb", "-0", "+7", "9223372036854775807b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseBytes(text)
		if err != nil {
			return
		}
		if n < 0 {
			t.Fatalf("ParseBytes(%q) = %d", text, n)
		}
		back, err := ParseBytes(Bytes(min(n, 1<<59)))
		if err != nil {
			t.Fatalf("Bytes(%d) = %q does not parse: %v", n, Bytes(n), err)
		}
		if diff := math.Abs(float64(back - min(n, 1<<59))); diff > float64(n)*0.006 {
			t.Fatalf("%d printed and read back is %d", n, back)
		}
	})
}
