package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"highwater/internal/units"
	"highwater/replay"
	"highwater/tracer/setting"
)

// Verdict says whether a setting can be deployed.
type Verdict string

// Verdicts; see the package comment.
const (
	Safe    Verdict = replay.VerdictSafe
	Unsafe  Verdict = replay.VerdictUnsafe
	Unknown Verdict = replay.VerdictUnknown
	Refused Verdict = "refused"
)

// Row is one combination of settings. Plain numbers are medians over the draws, Low and High bound
// the middle 95 %, Low80 and High80 the middle 80 %; nil is not known.
type Row struct {
	Set     map[string]string `json:"set"` // the varied settings
	Verdict Verdict           `json:"verdict"`
	Reasons []string          `json:"reasons"` // why not safe
	Jobs    int64             `json:"jobs"`    // that the prediction runs

	// what the limit is held against: RSS, live bytes where RSS is not known
	PeakBytes       *int64 `json:"peak_bytes"`
	PeakBytesLow    *int64 `json:"peak_bytes_low"`
	PeakBytesHigh   *int64 `json:"peak_bytes_high"`
	PeakBytesLow80  *int64 `json:"peak_bytes_low80"`
	PeakBytesHigh80 *int64 `json:"peak_bytes_high80"`
	PeakKind        string `json:"peak_kind"` // rss | live

	PeakOverLimitRatio  *float64 `json:"peak_over_limit_ratio"`
	ProofIntervalNS     *int64   `json:"proof_interval_ns"`
	ProofIntervalNSLow  *int64   `json:"proof_interval_ns_low"`
	ProofIntervalNSHigh *int64   `json:"proof_interval_ns_high"`
	GPUIdleRatio        *float64 `json:"gpu_idle_ratio"`
	Rho                 *float64 `json:"rho"`
	RhoLow              *float64 `json:"rho_low"`
	RhoHigh             *float64 `json:"rho_high"`
	// most partitions finished by synthesis and not yet taken by a GPU worker
	BacklogItems *int64 `json:"backlog_max_items"`

	// of the rows that the answer names; null elsewhere
	Growth *replay.Growth `json:"growth"`
}

// Result is a plan. Its JSON is the `--json` output of `highwater plan`, with what the command adds.
type Result struct {
	LimitBytes int64    `json:"limit_bytes"`
	Axes       []string `json:"axes"` // the varied settings, the first changing slowest in rows
	Rows       []Row    `json:"rows"`
	// indexes into rows; null where there is none
	Recommended *int `json:"recommended_row"`
	Cheapest    *int `json:"cheapest_row"`
	// the first setting beyond the recommended one that is not safe
	NextUp *int `json:"next_up_row"`
	// the answer in a sentence, and why the next one up is not safe
	Answer string `json:"answer"`
	Why    string `json:"why"`

	axes []Axis
}

// Count is how many rows have the verdict.
func (r *Result) Count(v Verdict) (n int) {
	for i := range r.Rows {
		if r.Rows[i].Verdict == v {
			n++
		}
	}
	return n
}

// Name is a row's settings in the axes' order.
func (r *Result) Name(i int) string { return Text(r.Rows[i].Set, r.axes) }

func rowOf(set map[string]string, p *replay.Prediction) Row {
	row := Row{
		Set: set, PeakKind: "rss", Reasons: []string{},
		PeakBytes: p.PeakRSSBytes, PeakBytesLow: p.PeakRSSBytesLow, PeakBytesHigh: p.PeakRSSBytesHigh,
		PeakBytesLow80: p.PeakRSSBytesLow80, PeakBytesHigh80: p.PeakRSSBytesHigh80,
		PeakOverLimitRatio: p.PeakOverLimitRatio, ProofIntervalNS: p.ProofIntervalNS,
		ProofIntervalNSLow: p.ProofIntervalNSLow, ProofIntervalNSHigh: p.ProofIntervalNSHigh,
		GPUIdleRatio: p.GPUIdleRatio, Rho: p.Rho, RhoLow: p.RhoLow, RhoHigh: p.RhoHigh,
	}
	if p.PeakRSSBytes == nil {
		row.PeakKind = "live"
		row.PeakBytes, row.PeakBytesLow, row.PeakBytesHigh = p.PeakLiveBytes, p.PeakLiveBytesLow,
			p.PeakLiveBytesHigh
		row.PeakBytesLow80, row.PeakBytesHigh80 = p.PeakLiveBytesLow80, p.PeakLiveBytesHigh80
	}
	if n, ok := p.QueueMaxItems["backlog"]; ok {
		row.BacklogItems = &n
	}
	row.Jobs = jobsOf(p)
	row.judge(p)
	return row
}

// jobsOf is how many jobs a prediction ran, 0 where it does not say.
func jobsOf(p *replay.Prediction) int64 {
	n, _ := strconv.ParseInt(p.Settings["jobs"].Value, 10, 64)
	return n
}

func (row *Row) judge(p *replay.Prediction) {
	row.Verdict = Verdict(p.Verdict())
	switch {
	case row.Verdict != Unknown:
	case p.Support.Verdict != replay.SupportInside:
		row.Reasons = append(row.Reasons, p.Support.Reasons...)
	default:
		row.Reasons = append(row.Reasons, "the traces have neither RSS nor buffers to predict a peak from")
	}
}

// pick finds the rows that answer.
func (r *Result) pick() {
	fastest := r.best(func(a, b *Row) bool { return intervalOf(a) < intervalOf(b) }, nil)
	if fastest == nil {
		r.NextUp = r.lowest()
		return
	}
	r.Recommended = r.lowestWithin(*fastest, SameRatio)
	r.Cheapest = r.lowestWithin(*fastest, NearBestRatio)
	r.NextUp = r.nextUp(*r.Recommended)
}

// lowestWithin is the safe row with the lowest peak whose interval is at most ratio longer.
func (r *Result) lowestWithin(fastest int, ratio float64) *int {
	most := intervalOf(&r.Rows[fastest]) * (1 + ratio)
	return r.best(func(a, b *Row) bool { return *a.PeakBytes < *b.PeakBytes },
		func(row *Row) bool { return intervalOf(row) <= most })
}

// intervalOf is a row's proof interval; what has none is the slowest.
func intervalOf(row *Row) float64 {
	if row.ProofIntervalNS == nil {
		return math.Inf(1)
	}
	return float64(*row.ProofIntervalNS)
}

// best is the first safe row that no other is better than, of those that pass the filter.
func (r *Result) best(better func(a, b *Row) bool, filter func(*Row) bool) *int {
	var at *int
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Verdict != Safe || filter != nil && !filter(row) {
			continue
		}
		if at == nil || better(row, &r.Rows[*at]) {
			at = &i
		}
	}
	return at
}

// lowest is the row with the lowest peak, to say why not even that is safe.
func (r *Result) lowest() (at *int) {
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.PeakBytes != nil && (at == nil || *row.PeakBytes < *r.Rows[*at].PeakBytes) {
			at = &i
		}
	}
	return at
}

// nextUp goes up the first axis of numbers, everything else as recommended, to the first row that
// is not safe.
func (r *Result) nextUp(from int) *int {
	axis := r.numberAxis()
	if axis < 0 {
		return nil
	}
	base := r.Rows[from].Set
	var best *int
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Verdict == Safe || !r.sameBut(axis, row.Set, base) ||
			!above(row.Set[r.axes[axis].Name], base[r.axes[axis].Name]) {
			continue
		}
		if best == nil || above(r.Rows[*best].Set[r.axes[axis].Name], row.Set[r.axes[axis].Name]) {
			best = &i
		}
	}
	return best
}

// numberAxis is the first axis whose values can go up, -1 where there is none.
func (r *Result) numberAxis() int {
	return slices.IndexFunc(r.axes, func(a Axis) bool {
		s, err := setting.Lookup(a.Name)
		return err == nil && (s.Kind == setting.Int || s.Kind == setting.Bytes)
	})
}

// sameBut says whether two rows have the same values off an axis; a value that was taken from the
// axis (channel_capacity=partition_workers) may go with it.
func (r *Result) sameBut(axis int, a, b map[string]string) bool {
	name := r.axes[axis].Name
	for i, x := range r.axes {
		if i == axis || a[x.Name] == b[x.Name] {
			continue
		}
		follows := slices.Contains(x.Values, name) && a[x.Name] == a[name] && b[x.Name] == b[name]
		if !follows {
			return false
		}
	}
	return true
}

// above compares two numbers of a setting; unbounded is above all.
func above(a, b string) bool {
	n, m := number(a), number(b)
	return n > m
}

func number(text string) float64 {
	var n float64
	if _, err := fmt.Sscanf(text, "%g", &n); err != nil {
		return math.Inf(1)
	}
	return n
}

// explain writes the answer's sentences.
func (r *Result) explain() {
	if r.Recommended == nil {
		r.Answer = fmt.Sprintf("No setting tried is safe under %s: %d unsafe, %d unknown, %d refused.",
			units.Bytes(r.LimitBytes), r.Count(Unsafe), r.Count(Unknown), r.Count(Refused))
		if r.NextUp != nil {
			r.Why = "Even the one with the lowest peak, " + r.Name(*r.NextUp) + ", is " + r.because(*r.NextUp)
		}
		return
	}
	row := &r.Rows[*r.Recommended]
	r.Answer = fmt.Sprintf("Take %s: %s of %s at the peak (95 %%: %s), %s to spare at the median, %s a proof.",
		r.Name(*r.Recommended), bytesText(row.PeakBytes), units.Bytes(r.LimitBytes),
		rangeText(row.PeakBytesLow, row.PeakBytesHigh), units.Bytes(r.LimitBytes-*row.PeakBytes),
		nanosText(row.ProofIntervalNS))
	if g := row.Growth; g != nil && g.Text != "" && g.Matters() {
		r.Answer += " With it " + strings.TrimSuffix(g.Text, ".") +
			": say with --jobs or --duration how long you mean to run."
	}
	if r.NextUp != nil {
		r.Why = r.Name(*r.NextUp) + " is " + r.because(*r.NextUp)
		return
	}
	r.Why = "No setting tried with the next values of " + r.axes[0].Name +
		" is worse than safe: vary it further to see where that ends."
}

// because is a row's verdict with its numbers.
func (r *Result) because(i int) string {
	row := &r.Rows[i]
	if row.Verdict == Refused || row.Verdict == Unknown {
		return fmt.Sprintf("%s: %s.", row.Verdict, firstReasons(row.Reasons))
	}
	text := fmt.Sprintf("%s: predicted peak %s (95 %%: %s) against %s, P(peak > limit) %s",
		row.Verdict, bytesText(row.PeakBytes), rangeText(row.PeakBytesLow, row.PeakBytesHigh),
		units.Bytes(r.LimitBytes), units.Percent(*row.PeakOverLimitRatio))
	if row.Rho != nil && row.BacklogItems != nil && *row.BacklogItems > 0 {
		text += fmt.Sprintf("; rho is %.2f and up to %d finished partitions wait for the GPU side",
			*row.Rho, *row.BacklogItems)
	}
	if g := row.Growth; g != nil && g.BytesPerS > 0 && g.Text != "" {
		text += "; " + strings.TrimSuffix(g.Text, ".")
	}
	return text + "."
}

// firstReasons are two of the reasons, and how many more there are.
func firstReasons(reasons []string) string {
	more := ""
	if n := len(reasons) - 2; n > 0 {
		reasons, more = reasons[:2], fmt.Sprintf("; and %d more reasons", n)
	}
	return strings.TrimSuffix(strings.Join(reasons, "; "), ".") + more
}

func bytesText(n *int64) string {
	if n == nil {
		return "?"
	}
	return units.Bytes(*n)
}

func nanosText(n *int64) string {
	if n == nil {
		return "?"
	}
	return units.Nanos(*n)
}

func rangeText(low, high *int64) string { return bytesText(low) + " to " + bytesText(high) }

// Sentences are the answer, and why the next one up is not safe where there is one.
func (r *Result) Sentences() []string {
	if r.Why == "" {
		return []string{r.Answer}
	}
	return []string{r.Answer, r.Why}
}
