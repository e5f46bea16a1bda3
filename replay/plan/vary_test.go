package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVary(t *testing.T) {
	for text, want := range map[string][]string{
		"partition_workers=1..4":              {"1", "2", "3", "4"},
		"partition_workers=2..9:3,12":         {"2", "5", "8", "12"},
		"partition_workers=3,3,1..3":          {"3", "1", "2"},
		"channel_capacity=0,unbounded":        {"0", "unbounded"},
		"channel_capacity=1,gpu_workers":      {"1", "gpu_workers"},
		"permit_release=all":                  {"synth_end", "send_accepted", "gpu_pickup", "freed"},
		"early_free=all":                      {"false", "true"},
		"byte_budget=1GiB..3GiB:1GiB":         {"1073741824", "2147483648", "3221225472"},
		"channel_capacity=partition_workers":  {"partition_workers"},
		"jobs_in_flight=1048575..1048576:100": {"1048575"},
	} {
		axis, err := ParseVary(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if name, _, _ := strings.Cut(text, "="); axis.Name != name {
			t.Errorf("%s: axis %q", text, axis.Name)
		}
		if d := cmp.Diff(want, axis.Values); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func TestParseVaryRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"partition_workers":                   "not NAME=VALUES",
		"=1":                                  "not NAME=VALUES",
		"partition_workrs=1":                  "partition_workrs",
		"log_size=16..18":                     "replay cannot vary",
		"partition_workers=0..3":              "partition_workers",
		"partition_workers=4..2":              "not 1 to",
		"partition_workers=1..9:0":            "range step",
		"partition_workers=all":               "give a range such as 1..12",
		"permit_release=synth_end..freed":     "a range needs a setting of numbers",
		"permit_release=partition_workers":    "cannot be taken",
		"partition_workers=partition_workers": "cannot be taken",
		"channel_capacity=unbounded..4":       "not a whole number",
		"byte_budget=1MiB..8EiB:1":            "byte_budget",
		"byte_budget=1MiB..8000000GiB:1MiB":   "not 1 to",
		"partition_workers=1,,2":              "partition_workers",
	} {
		_, err := ParseVary(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}

func axes(t *testing.T, texts ...string) (out []Axis) {
	t.Helper()
	for _, text := range texts {
		a, err := ParseVary(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

func TestGrid(t *testing.T) {
	list := axes(t, "partition_workers=1,2", "channel_capacity=1,partition_workers,gpu_workers")
	got, err := Grid(list, func(name string) (string, bool) { return "3", name == "gpu_workers" })
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, set := range got {
		texts = append(texts, Text(set, list))
	}
	want := []string{
		"partition_workers=1 channel_capacity=1", // also the one that takes partition_workers
		"partition_workers=1 channel_capacity=3",
		"partition_workers=2 channel_capacity=1",
		"partition_workers=2 channel_capacity=2",
		"partition_workers=2 channel_capacity=3",
	}
	if d := cmp.Diff(want, texts); d != "" {
		t.Error(d)
	}
}

func TestGridRefuses(t *testing.T) {
	unknown := func(string) (string, bool) { return "", false }
	for name, c := range map[string]struct {
		axes []string
		want string
	}{
		"twice":    {[]string{"jobs=1", "jobs=2"}, "given twice"},
		"too many": {[]string{"jobs=1..200", "partitions=1..200"}, "more than 20000 combinations"},
		"unsaid":   {[]string{"channel_capacity=gpu_workers"}, "the trace does not say its gpu_workers"},
		"circle": {
			[]string{"channel_capacity=jobs_in_flight", "jobs_in_flight=channel_capacity"},
			"a reference itself",
		},
	} {
		_, err := Grid(axes(t, c.axes...), unknown)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func FuzzParseVary(f *testing.F) {
	f.Add("partition_workers=1..12")
	f.Add("byte_budget=1GiB..9EiB:1GiB,unbounded")
	f.Add("channel_capacity=1,partition_workers,0..9223372036854775807")
	f.Fuzz(func(t *testing.T, text string) {
		axis, err := ParseVary(text)
		if err == nil && (len(axis.Values) == 0 || len(axis.Values) > MaxSettings) {
			t.Errorf("%q: %d values", text, len(axis.Values))
		}
	})
}
