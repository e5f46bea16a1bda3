package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestThresholdFile(t *testing.T) {
	for name, c := range map[string]struct{ text, want, err string }{
		"numbers": {"[leak]\nmin_jobs = 12\nmin_z = 2.25\n", "leak.min_jobs=12 leak.min_z=2.25", ""},
		"two tables": {
			"[leak]\nmin_jobs = 9\n[queue-pileup]\nmin_partitions = 3\n",
			"leak.min_jobs=9 queue-pileup.min_partitions=3", "",
		},
		"empty":               {"", "", ""},
		"no such threshold":   {"[leak]\nmin_job = 1\n", "", "x.toml:2: no threshold leak.min_job"},
		"no such analyzer":    {"[leek]\nmin_jobs = 1\n", "", "no threshold leek.min_jobs"},
		"a word":              {"[leak]\nmin_jobs = \"nine\"\n", "", "leak.min_jobs is not a number"},
		"a key without table": {"min_jobs = 1\n", "", "x.toml"},
		"not TOML":            {"[leak\n", "", "x.toml:2"},
	} {
		set := map[string]float64{}
		err := parseThresholds("x.toml", c.text, set)
		var got []string
		for _, n := range sortedKeys(set) {
			got = append(got, n+"="+strconv.FormatFloat(set[n], 'f', -1, 64))
		}
		if c.err == "" && (err != nil || strings.Join(got, " ") != c.want) {
			t.Errorf("%s: %v %v, want %s", name, got, err, c.want)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want %s", name, err, c.err)
		}
	}
}

// FuzzThresholds: whatever the file says, no panic, and only names that there are.
func FuzzThresholds(f *testing.F) {
	f.Add("[leak]\nmin_jobs = 12\n")
	f.Add("[leak]\nmin_jobs = 1e999\n")
	f.Add("leak.min_z = nan\n[leak.x]\n")
	f.Add("[[leak]]\nmin_z = 1\n")
	names := thresholdNames()
	f.Fuzz(func(t *testing.T, text string) {
		set := map[string]float64{}
		err := parseThresholds("x.toml", text, set)
		for name := range set {
			if err == nil && !slices.Contains(names, name) {
				t.Errorf("took threshold %q", name)
			}
		}
	})
}
