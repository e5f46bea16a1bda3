package setting

import (
	"strconv"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Table() {
		if seen[s.Name] {
			t.Errorf("%s stands twice in the table", s.Name)
		}
		seen[s.Name] = true
		if got, err := s.Parse(s.Default); err != nil || got != s.Default {
			t.Errorf("%s: default %q parses to %q, %v", s.Name, s.Default, got, err)
		}
		if s.Doc == "" || !strings.HasSuffix(s.Doc, ".") {
			t.Errorf("%s: doc %q is not a sentence", s.Name, s.Doc)
		}
		if s.Kind == Word && len(s.Words) < 2 {
			t.Errorf("%s: a word setting with %d words", s.Name, len(s.Words))
		}
	}
}

func TestNames(t *testing.T) {
	s, err := Lookup("partition_workers")
	if err != nil {
		t.Fatal(err)
	}
	if s.Flag() != "partition-workers" || s.Env() != "HIGHWATER_PARTITION_WORKERS" {
		t.Errorf("flag %q, env %q", s.Flag(), s.Env())
	}
	_, err = Lookup("partition_worker")
	if err == nil || !strings.Contains(err.Error(), `"partition_workers"`) {
		t.Errorf("no hint at the nearest name: %v", err)
	}
	_, err = Lookup("zzzzzzzzzzzzzz")
	if err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("a hint at nothing near: %v", err)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, text, want, err string }{
		{"channel_capacity", "0", "0", ""},
		{"channel_capacity", "Unbounded", "unbounded", ""},
		{"channel_capacity", "-1", "", "outside 0..1048576"},
		{"partition_workers", "unbounded", "", "not a whole number"},
		{"partition_workers", "0", "", "outside 1..4096"},
		{"byte_budget", "512MiB", "536870912", ""},
		{"byte_budget", "1.5 GiB", "1610612736", ""},
		{"byte_budget", "12 bananas", "", "a number of bytes such as 512MiB"},
		{"byte_budget", "1", "", "outside"},
		{"gogc", "off", "off", ""},
		{"gogc", "100", "100", ""},
		{"gogc", "5", "", "outside 10..10000"},
		{"early_free", "TRUE", "true", ""},
		{"early_free", "maybe", "", "neither true nor false"},
		{"permit_release", "gpu_pickup", "gpu_pickup", ""},
		{"permit_release", "never", "", "not one of synth_end"},
		{"seed", "0xff", "255", ""},
		{"seed", "-1", "", "not an unsigned"},
	} {
		s, err := Lookup(c.name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Parse(c.text)
		if c.err == "" && (err != nil || got != c.want) {
			t.Errorf("%s=%q: %q, %v; want %q", c.name, c.text, got, err, c.want)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s=%q: error %v; want one with %q", c.name, c.text, err, c.err)
		}
	}
}

func TestValues(t *testing.T) {
	v := Defaults()
	c := v.Clone()
	if err := c.Set("jobs", "7", "flag"); err != nil {
		t.Fatal(err)
	}
	if v.Int("jobs") != 1 || c.Int("jobs") != 7 || c.Source("jobs") != "flag" || v.Source("jobs") != "default" {
		t.Errorf("a clone is not apart: %d %d %s %s", v.Int("jobs"), c.Int("jobs"), c.Source("jobs"), v.Source("jobs"))
	}
	if v.Int("gogc") != Unbounded || v.Int("byte_budget") != Unbounded {
		t.Errorf("off and unbounded must read as Unbounded")
	}
	if err := c.Set("jobz", "7", "flag"); err == nil {
		t.Error("an unknown name was stored")
	}
	if len(v.Names()) != len(Table()) {
		t.Errorf("%d names of %d settings", len(v.Names()), len(Table()))
	}
}

// FuzzParse: whatever parses is canonical, so that parsing it again changes nothing.
func FuzzParse(f *testing.F) {
	for _, s := range Table() {
		f.Add(s.Name, s.Default)
	}
	f.Add("byte_budget", "755GiB")
	f.Add("byte_budget", "1e300TiB")
	f.Add("byte_budget", "9223372036854775807")
	f.Fuzz(func(t *testing.T, name, text string) {
		s, err := Lookup(name)
		if err != nil {
			return
		}
		canon, err := s.Parse(text)
		if err != nil {
			return
		}
		again, err := s.Parse(canon)
		if err != nil || again != canon {
			t.Errorf("%s: %q became %q became %q, %v", name, text, canon, again, err)
		}
		if n, err := strconv.ParseInt(canon, 10, 64); err == nil && (s.Kind == Int || s.Kind == Bytes) && (n < s.Min || n > s.Max) {
			t.Errorf("%s: %d is outside %d..%d", name, n, s.Min, s.Max)
		}
	})
}
