package published_test

import (
	"context"
	"flag"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"highwater/replay"
	"highwater/replay/models"
	"highwater/replay/models/published"
	"highwater/replay/pipeline"
)

var update = flag.Bool("update", false, "rewrite the table in docs/cuzk-validation.md")

// The draws of the table in docs/cuzk-validation.md.
const (
	draws = 400
	seed  = 1
)

var rows = sync.OnceValues(func() ([]published.Row, error) {
	return published.Predict(context.Background(), draws, seed, nil)
})

func predict(t *testing.T) []published.Row {
	t.Helper()
	rows, err := rows()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestPublishedRuns holds the promises about the published runs; see docs/cuzk-validation.md.
func TestPublishedRuns(t *testing.T) {
	for _, r := range predict(t) {
		off := math.Abs(r.Error)
		switch {
		case r.Model == "cuzk/v7c" && off > 0.10:
			t.Errorf("V7c: %.1f GiB predicted, 294.7 measured: more than 10 %% off", r.PeakGiB)
		case r.Model == "cuzk/v8" && r.PartitionWorkers >= 2 && r.Rho < 0.9 && off > 0.07:
			t.Errorf("V8 pw=%d gw=%d: %.1f GiB predicted, %.1f measured: more than 7 %% off",
				r.PartitionWorkers, r.GPUWorkers, r.PeakGiB, r.Run.PeakGiB)
		case !r.Inside:
			t.Errorf("%s pw=%d gw=%d: measured %.1f GiB outside %.1f..%.1f", r.Model,
				r.PartitionWorkers, r.GPUWorkers, r.Run.PeakGiB, r.Low95, r.High95)
		}
	}
}

func TestModelBeatsTheFormula(t *testing.T) {
	model, formula := published.Sum(predict(t))
	if model.Mean > formula.Mean/2 || model.Worst > formula.Worst/2 {
		t.Errorf("errors: model %.3f mean %.3f worst, formula %.3f and %.3f", model.Mean, model.Worst,
			formula.Mean, formula.Worst)
	}
}

func incident(t *testing.T, set map[string]string) *replay.Prediction {
	t.Helper()
	m, err := models.Load("cuzk/v7")
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.FromModel(m).Predict(context.Background(), replay.Question{
		Set: set, Draws: draws, Seed: seed, MemoryLimit: (755 - 87) << 30, Growth: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTheIncident: of 755 GiB, 87 belong to the rest of the machine.
func TestTheIncident(t *testing.T) {
	p := incident(t, map[string]string{"partition_workers": "12"})
	if *p.PeakOverLimitRatio < 0.01 {
		t.Errorf("pw=12 is called safe: P(peak > limit) = %v", *p.PeakOverLimitRatio)
	}
	if p.Growth.BytesPerS <= 0 || p.Growth.TimeToLimitNS == nil {
		t.Errorf("pw=12: no growth or time to the limit: %+v", p.Growth)
	}
	if *p.Rho <= 1 || p.QueueMaxItems["backlog"] < 20 {
		t.Errorf("pw=12: rho %v, backlog %d: no pile-up", *p.Rho, p.QueueMaxItems["backlog"])
	}
	p = incident(t, map[string]string{"partition_workers": "10"})
	if *p.PeakOverLimitRatio >= 0.01 {
		t.Errorf("pw=10 is called unsafe: P(peak > limit) = %v", *p.PeakOverLimitRatio)
	}
	p = incident(t, map[string]string{
		"partition_workers": "12", "permit_release": pipeline.ReleaseSendAccepted,
	})
	if *p.PeakOverLimitRatio >= 0.01 || *p.PeakRSSBytes > 340<<30 {
		t.Errorf("pw=12 with the permit held until the send: %d bytes, P %v", *p.PeakRSSBytes,
			*p.PeakOverLimitRatio)
	}
}

const (
	doc   = "../../../docs/cuzk-validation.md"
	begin = "<!-- table: go test ./replay/models/published -update -->\n"
	end   = "<!-- end of table -->"
)

// TestDocument: the table of docs/cuzk-validation.md is what the code says.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", doc)
	}
	got := "\n" + published.Markdown(predict(t)) + "\n"
	if *update {
		if err := os.WriteFile(doc, []byte(before+begin+got+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != old {
		t.Errorf("the table of %s is not what the models say: run go test ./replay/models/published -update\n%s",
			doc, got)
	}
}
