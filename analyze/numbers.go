package analyze

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Plain writes v for people: three significant digits, and never an exponent.
func Plain(v float64) string {
	decimals := 0
	for size := math.Abs(v); size > 0 && size < 99.95 && decimals < 9; size *= 10 {
		decimals++
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Number is one figure of evidence. Its name is snake_case and ends in its unit (_bytes, _ns,
// _ratio, _partitions, _per_s …).
type Number struct {
	Name  string
	Value float64
}

// Numbers are figures in the order in which they are to be read. In JSON they are one object.
type Numbers []Number

// Value finds a figure by name.
func (n Numbers) Value(name string) (float64, bool) {
	for _, x := range n {
		if x.Name == name {
			return x.Value, true
		}
	}
	return 0, false
}

// MarshalJSON writes the figures as one object in their order, null for one that is not a number.
func (n Numbers) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, x := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		v := []byte("null")
		if !math.IsNaN(x.Value) && !math.IsInf(x.Value, 0) {
			var err error
			if v, err = json.Marshal(x.Value); err != nil {
				return nil, fmt.Errorf("write number %s: %w", x.Name, err)
			}
		}
		fmt.Fprintf(&b, "%q:%s", x.Name, v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
