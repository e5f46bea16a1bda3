package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"highwater/tracer/setting"
)

// MaxSettings bounds how many settings one plan compares.
const MaxSettings = 20_000

// Axis is one setting and the values that a plan tries for it.
type Axis struct {
	Name string
	// canonical texts, or the name of another setting, whose value is then taken
	Values []string
}

// ParseVary reads NAME=VALUES: values separated by commas, each a value, a range A..B or A..B:STEP
// of whole numbers, the name of another setting (its value is taken), or `all` words of a setting
// that has few.
func ParseVary(text string) (Axis, error) {
	name, list, ok := strings.Cut(text, "=")
	if !ok || name == "" || list == "" {
		return Axis{}, fmt.Errorf("vary %q: not NAME=VALUES, such as partition_workers=1..12", text)
	}
	s, err := setting.Lookup(name)
	if err != nil {
		return Axis{}, fmt.Errorf("vary %w", err)
	}
	if !s.Replay {
		return Axis{}, fmt.Errorf("vary %s: replay cannot vary this setting; record a run with each value",
			name)
	}
	axis := Axis{Name: name}
	for item := range strings.SplitSeq(list, ",") {
		values, err := parseItem(s, item)
		if err != nil {
			return Axis{}, fmt.Errorf("vary %s: %w", name, err)
		}
		if len(axis.Values)+len(values) > MaxSettings {
			return Axis{}, fmt.Errorf("vary %s: more than %d values", name, MaxSettings)
		}
		axis.Values = append(axis.Values, values...)
	}
	axis.Values = unique(axis.Values)
	return axis, nil
}

// unique keeps the first of equal texts, in order.
func unique(values []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(values, func(v string) bool {
		was := seen[v]
		seen[v] = true
		return was
	})
}

func parseItem(s setting.Setting, item string) ([]string, error) {
	if item == "all" {
		return allOf(s)
	}
	if from, to, ok := strings.Cut(item, ".."); ok {
		return parseRange(s, from, to)
	}
	if other, err := setting.Lookup(item); err == nil {
		if other.Name == s.Name || other.Kind != s.Kind {
			return nil, fmt.Errorf("%q: the value of %s cannot be taken for it", item, other.Name)
		}
		return []string{other.Name}, nil
	}
	canon, err := s.Parse(item)
	if err != nil {
		return nil, err
	}
	return []string{canon}, nil
}

func allOf(s setting.Setting) ([]string, error) {
	switch s.Kind {
	case setting.Bool:
		return []string{"false", "true"}, nil
	case setting.Word:
		return slices.Clone(s.Words), nil
	}
	return nil, fmt.Errorf("%q works for settings with few words; give a range such as %d..%d",
		"all", max(s.Min, 1), max(s.Min, 1)+11)
}

// parseRange is every STEP-th whole number from from to to, which may end in :STEP.
func parseRange(s setting.Setting, from, to string) ([]string, error) {
	if s.Kind != setting.Int && s.Kind != setting.Bytes {
		return nil, fmt.Errorf("%s..%s: a range needs a setting of numbers", from, to)
	}
	to, stepText, stepped := strings.Cut(to, ":")
	step := int64(1)
	if stepped {
		n, err := numberOf(s, stepText)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("range step %q: not a whole number above 0", stepText)
		}
		step = n
	}
	a, err := numberOf(s, from)
	if err != nil {
		return nil, err
	}
	b, err := numberOf(s, to)
	if err != nil {
		return nil, err
	}
	if b < a || (b-a)/step >= MaxSettings {
		return nil, fmt.Errorf("range %s..%s: not 1 to %d values", from, to, MaxSettings)
	}
	var out []string
	for n := a; n <= b; n += step {
		out = append(out, strconv.FormatInt(n, 10))
		if n > b-step { // the next would be past the end, or past int64
			break
		}
	}
	return out, nil
}

// numberOf is a bounded number of the setting.
func numberOf(s setting.Setting, text string) (int64, error) {
	canon, err := s.Parse(text)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(canon, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: not a whole number", text)
	}
	return n, nil
}

// Grid is every combination of the axes' values, each a set of settings; base answers for settings
// that no axis varies. Combinations that come out equal are tried once. The first axis changes
// slowest.
func Grid(axes []Axis, base func(name string) (string, bool)) ([]map[string]string, error) {
	total := 1
	for i, a := range axes {
		if slices.ContainsFunc(axes[:i], func(b Axis) bool { return b.Name == a.Name }) {
			return nil, fmt.Errorf("vary %s: given twice", a.Name)
		}
		if total *= max(len(a.Values), 1); total > MaxSettings {
			return nil, fmt.Errorf("vary: more than %d combinations; narrow a range", MaxSettings)
		}
	}
	var out []map[string]string
	seen := map[string]bool{}
	for i := range total {
		set := pick(axes, i)
		if err := resolve(set, base); err != nil {
			return nil, err
		}
		if key := Text(set, axes); !seen[key] {
			seen[key] = true
			out = append(out, set)
		}
	}
	return out, nil
}

// pick is the i-th combination, references unresolved.
func pick(axes []Axis, i int) map[string]string {
	set := map[string]string{}
	for _, a := range slices.Backward(axes) {
		set[a.Name] = a.Values[i%len(a.Values)]
		i /= len(a.Values)
	}
	return set
}

// resolve puts the value of the setting named in place of a reference.
func resolve(set map[string]string, base func(string) (string, bool)) error {
	plain := maps.Clone(set)
	for _, name := range slices.Sorted(maps.Keys(plain)) { // of several faults always the same one
		value := plain[name]
		if _, err := setting.Lookup(value); err != nil {
			continue
		}
		of, ok := plain[value]
		if !ok {
			of, ok = base(value)
		}
		if !ok {
			return fmt.Errorf("vary %s=%s: the trace does not say its %s", name, value, value)
		}
		if _, err := setting.Lookup(of); err == nil {
			return fmt.Errorf("vary %s=%s: that is a reference itself", name, value)
		}
		set[name] = of
	}
	return nil
}

// Text is a set of settings in the axes' order: "partition_workers=12 channel_capacity=1".
func Text(set map[string]string, axes []Axis) string {
	var b strings.Builder
	for i, a := range axes {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.Name + "=" + set[a.Name])
	}
	return b.String()
}
