// Package published sets the named models beside the runs that cuzk's authors published: measured
// peak and throughput of each run, what the model predicts, and what the operators' formula says.
package published

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strconv"

	"github.com/BurntSushi/toml"

	"highwater/replay"
	"highwater/replay/models"
)

//go:embed published.toml
var table string

// Run is one published run. Zero settings are the model's own.
type Run struct {
	Model            string  `toml:"model" json:"model"`
	Source           string  `toml:"source" json:"source"`
	PartitionWorkers int64   `toml:"partition_workers" json:"partition_workers"`
	GPUWorkers       int64   `toml:"gpu_workers" json:"gpu_workers"`
	Jobs             int64   `toml:"jobs" json:"jobs"`
	JobsInFlight     int64   `toml:"jobs_in_flight" json:"jobs_in_flight"`
	PeakGiB          float64 `toml:"peak_gib" json:"measured_peak_rss_gib"`
	ProofS           float64 `toml:"proof_s" json:"measured_proof_interval_s"` // 0: not published
	// the run was killed at its peak, or may have been: without a limit it would have gone higher
	Killed     bool `toml:"killed" json:"killed"`
	TimingUsed bool `toml:"timing_used" json:"timing_used"` // a time of it stands behind a parameter
}

// Row is a run with what is predicted of it. Errors are predicted over measured, minus 1.
type Row struct {
	Run
	PeakGiB    float64  `json:"peak_rss_gib"` // median
	Low80      float64  `json:"peak_rss_gib_low80"`
	High80     float64  `json:"peak_rss_gib_high80"`
	Low95      float64  `json:"peak_rss_gib_low"`
	High95     float64  `json:"peak_rss_gib_high"`
	Error      float64  `json:"peak_rss_error_ratio"`
	Inside     bool     `json:"inside_95"`
	Rho        float64  `json:"rho"`
	ProofS     float64  `json:"proof_interval_s"`
	ProofError *float64 `json:"proof_interval_error_ratio"` // null where it was not published
	// what the operators' formula 69 + 20 partition_workers says; null where there are no workers
	FormulaGiB   *float64 `json:"formula_gib"`
	FormulaError *float64 `json:"formula_error_ratio"`
}

const gib = 1 << 30

// Runs are the published runs.
func Runs() ([]Run, error) {
	var file struct {
		Row []Run `toml:"row"`
	}
	meta, err := toml.Decode(table, &file)
	if err != nil {
		return nil, fmt.Errorf("read published runs: %w", err)
	}
	if extra := meta.Undecoded(); len(extra) > 0 {
		return nil, fmt.Errorf("read published runs: unknown key %q", extra[0].String())
	}
	return file.Row, nil
}

// Set are the settings of the run, as replay takes them.
func (r *Run) Set() map[string]string {
	out := map[string]string{}
	for name, n := range map[string]int64{
		"partition_workers": r.PartitionWorkers, "gpu_workers": r.GPUWorkers,
		"jobs": r.Jobs, "jobs_in_flight": r.JobsInFlight,
	} {
		if n > 0 {
			out[name] = strconv.FormatInt(n, 10)
		}
	}
	return out
}

// Predict is the table of all published runs, by so many draws of one seed. It calls progress, which
// may be nil, after each run.
func Predict(ctx context.Context, draws int, seed uint64, progress func(done, total int)) ([]Row, error) {
	runs, err := Runs()
	if err != nil {
		return nil, err
	}
	var rows []Row
	for i := range runs {
		row, err := predict(ctx, &runs[i], replay.Question{
			Set: runs[i].Set(), Draws: draws, Seed: seed,
		})
		if err != nil {
			return nil, fmt.Errorf("predict %s: %w", runs[i].Model, err)
		}
		rows = append(rows, row)
		if progress != nil {
			progress(len(rows), len(runs))
		}
	}
	return rows, nil
}

func predict(ctx context.Context, run *Run, q replay.Question) (Row, error) {
	m, err := models.Load(run.Model)
	if err != nil {
		return Row{}, err
	}
	p, err := replay.FromModel(m).Predict(ctx, q)
	if err != nil {
		return Row{}, err
	}
	in := func(bytes *int64) float64 {
		if bytes == nil {
			return math.NaN()
		}
		return float64(*bytes) / gib
	}
	row := Row{
		Run: *run, PeakGiB: in(p.PeakRSSBytes),
		Low80: in(p.PeakRSSBytesLow80), High80: in(p.PeakRSSBytesHigh80),
		Low95: in(p.PeakRSSBytesLow), High95: in(p.PeakRSSBytesHigh),
	}
	if p.Rho != nil {
		row.Rho = *p.Rho
	}
	row.Error = row.PeakGiB/run.PeakGiB - 1
	row.Inside = row.Low95 <= run.PeakGiB && run.PeakGiB <= row.High95
	row.ProofS = float64(*p.ProofIntervalNS) / 1e9
	if run.ProofS > 0 {
		e := row.ProofS/run.ProofS - 1
		row.ProofError = &e
	}
	if run.PartitionWorkers > 0 {
		f := 69 + 20*float64(run.PartitionWorkers)
		e := f/run.PeakGiB - 1
		row.FormulaGiB, row.FormulaError = &f, &e
	}
	return row, nil
}

// Errors is the mean and the worst of the absolute errors.
type Errors struct {
	Mean  float64 `json:"mean_error_ratio"`
	Worst float64 `json:"worst_error_ratio"`
}

// Summary is the whole comparison.
type Summary struct {
	Rows    []Row  `json:"rows"`
	Model   Errors `json:"model_errors"`
	Formula Errors `json:"formula_errors"`
}

// Summarise puts the rows and their errors together.
func Summarise(rows []Row) Summary {
	model, formula := Sum(rows)
	return Summary{Rows: rows, Model: model, Formula: formula}
}

// Sum is the errors of the model and of the formula over the rows that both say something of.
func Sum(rows []Row) (model, formula Errors) {
	n := 0.0
	for i := range rows {
		r := &rows[i]
		if r.FormulaError == nil {
			continue
		}
		n++
		model.add(r.Error)
		formula.add(*r.FormulaError)
	}
	if n > 0 {
		model.Mean /= n
		formula.Mean /= n
	}
	return model, formula
}

func (e *Errors) add(x float64) {
	e.Mean += math.Abs(x)
	e.Worst = max(e.Worst, math.Abs(x))
}
