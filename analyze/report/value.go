package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"highwater/analyze"
	"highwater/internal/units"
)

// Unknown is how a figure that is not known is shown.
const Unknown = "not known"

// Value formats a figure by the unit that its name ends in (_bytes, _ns, _ratio …). Pointers that
// are nil are Unknown.
func Value(name string, v any) string {
	switch x := v.(type) {
	case nil:
		return Unknown
	case *int64:
		if x == nil {
			return Unknown
		}
		return whole(name, *x)
	case *float64:
		if x == nil {
			return Unknown
		}
		return fraction(name, *x)
	case int64:
		return whole(name, x)
	case int:
		return whole(name, int64(x))
	case float64:
		return fraction(name, x)
	}
	return fmt.Sprint(v)
}

func whole(name string, v int64) string {
	switch {
	case strings.HasSuffix(name, "_bytes") || name == "bytes":
		return units.Bytes(v)
	case strings.HasSuffix(name, "_ns"):
		return units.Nanos(v)
	}
	return units.Count(v) + things(name, v)
}

// counted are endings of names that count things; the figure says which.
var counted = []string{"_partitions", "_buffers", "_events"}

// things is the unit of a count, with a blank in front, "" where the name says it itself.
func things(name string, v int64) string {
	for _, unit := range counted {
		if strings.HasSuffix(name, unit) {
			word := " " + unit[1:]
			if v == 1 {
				word = strings.TrimSuffix(word, "s")
			}
			return word
		}
	}
	return ""
}

func fraction(name string, v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Unknown
	case name == "slowdown_ratio" || name == "stretch_ratio": // 1 is as before: not a share
		return strconv.FormatFloat(v, 'f', 2, 64) + " times"
	case strings.HasSuffix(name, "_ratio"):
		return units.Percent(v)
	case name == "rho":
		return strconv.FormatFloat(v, 'f', 2, 64)
	case strings.HasSuffix(name, "_gib_s") && v > 0 && v < 0.001:
		return "< 0.001 GiB·s"
	case strings.HasSuffix(name, "_gib_s"):
		return analyze.Plain(v) + " GiB·s"
	case strings.HasSuffix(name, "_bytes_per_s"):
		return units.FloatBytes(v) + "/s"
	case strings.HasSuffix(name, "_per_s"):
		return analyze.Plain(v) + " /s"
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return whole(name, int64(v))
	case strings.HasSuffix(name, "_bytes") || name == "bytes":
		return units.FloatBytes(v)
	case strings.HasSuffix(name, "_ns"):
		return units.Nanos(int64(v))
	}
	return analyze.Plain(v)
}

// unitsOf are endings of names that Value shows with the figure, so that Label leaves them out.
var unitsOf = []string{
	"_bytes",
	"_ns",
	"_ratio",
	"_gib_s",
	"_bytes_per_s",
	"_per_s",
	"_partitions",
	"_buffers",
	"_events",
}

// Label is a figure's name for people: waiting_max_partitions is "waiting max".
func Label(name string) string {
	for _, u := range unitsOf {
		if t, ok := strings.CutSuffix(name, u); ok {
			name = t
			break
		}
	}
	return strings.ReplaceAll(name, "_", " ")
}

// unit is one unit for a whole table of byte counts.
type unit struct {
	name  string
	bytes int64
}

// unitFor suits a table whose largest figure is n.
func unitFor(n int64) unit {
	for _, u := range []unit{{"GiB", units.GiB}, {"MiB", units.MiB}, {"KiB", units.KiB}} {
		if n >= u.bytes {
			return u
		}
	}
	return unit{"bytes", 1}
}

func (u unit) text(n int64) string {
	v := float64(n) / float64(u.bytes)
	switch {
	case u.bytes == 1:
		return units.Count(n)
	case v > 0 && v < 0.005:
		return "< 0.01"
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
