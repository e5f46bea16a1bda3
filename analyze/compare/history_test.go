package compare

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// series is runs of commits c00, c01 …, one after the other in time; change edits a commit's
// runs.
func series(t *testing.T, commits, runs int, change func(commit int, s *shop)) []*Run {
	t.Helper()
	var list []*Run
	for c := range commits {
		for k := range runs {
			s := usualShop(uint64(1000 + 17*c + k))
			s.commit = fmt.Sprintf("c%02d", c)
			s.startNS = int64(1e18) + int64(c*runs+k)*1e12
			change(c, &s)
			list = append(list, s.run(t, fmt.Sprintf("%s-%d", s.commit, k)))
		}
	}
	// the order of files says nothing
	list[0], list[len(list)-1] = list[len(list)-1], list[0]
	return list
}

func TestHistoryFindsTheCommit(t *testing.T) {
	runs := series(t, 12, 3, func(c int, s *shop) {
		if c >= 7 {
			s.synthNS *= 1.10
		}
	})
	h, err := BuildHistory(runs, HistoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Commits) != 12 || h.Commits[0].Label != "c00" || h.Commits[11].Label != "c11" {
		t.Fatalf("commits %+v", h.Commits)
	}
	found := false
	for _, c := range h.Changes {
		if c.Metric == (Metric{StageTime, "synthesis"}) {
			found = true
			if c.LastBefore != "c06" || c.FirstAfter != "c07" || c.Verdict != Regression ||
				*c.DeltaRatio < 0.08 || *c.DeltaRatio > 0.12 {
				t.Errorf("change %+v", c)
			}
		}
		if c.Metric == (Metric{StageTime, "prove_start"}) {
			t.Errorf("a change of prove_start: %+v", c)
		}
	}
	if !found {
		t.Errorf("no change of synthesis among %+v", h.Changes)
	}
}

func TestHistoryOfNoiseHasNoChange(t *testing.T) {
	h, err := BuildHistory(series(t, 12, 3, func(int, *shop) {}), HistoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Changes) != 0 {
		t.Errorf("changes in noise: %+v", h.Changes)
	}
}

func TestHistoryLeavesOutWhatDiffers(t *testing.T) {
	runs := series(t, 6, 2, func(c int, s *shop) {
		if c == 2 {
			s.settings = map[string]string{"presize": "false"}
		}
		if c == 4 {
			s.end = "killed"
		}
	})
	h, err := BuildHistory(runs, HistoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Commits) != 4 || len(h.LeftOut) != 4 {
		t.Fatalf("%d commits, left out %v", len(h.Commits), h.LeftOut)
	}
	text := fmt.Sprint(h.LeftOut)
	if !strings.Contains(text, "presize: true -> false") || !strings.Contains(text, "killed") {
		t.Errorf("left out without a reason: %s", text)
	}
	if !strings.Contains(h.LeftOut[0].Why, "presize") || !strings.Contains(h.LeftOut[3].Why, "killed") {
		t.Errorf("left out in another order than given: %s", text)
	}
	whole, err := BuildHistory(runs, HistoryOptions{Across: []string{KindSettings}})
	if err != nil || len(whole.Commits) != 5 {
		t.Errorf("across settings: %v, %d commits", err, len(whole.Commits))
	}
}

func TestHistoryIsRepeatable(t *testing.T) {
	build := func() string {
		h, err := BuildHistory(series(t, 10, 2, func(c int, s *shop) {
			if c >= 5 {
				s.aBytes += 1 << 20
			}
		}), HistoryOptions{Seed: 4})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(h) // %v of a change is its metric's name alone
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := build()
	if second := build(); first != second || !strings.Contains(first, `"first_after":"c05"`) {
		t.Errorf("one seed gives two histories, or no change at c05: %s\n%s", first, second)
	}
}
