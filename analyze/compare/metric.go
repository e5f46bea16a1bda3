package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Metric names one figure of a run.
type Metric struct {
	Name    string `json:"name"`    // ends in its unit: stage_time_ns
	Subject string `json:"subject"` // synthesis; "" where the name says it all
}

// String is the metric as --threshold and --metric take it: stage_time_ns/synthesis.
func (m Metric) String() string {
	if m.Subject == "" {
		return m.Name
	}
	return m.Name + "/" + m.Subject
}

// Names of metrics, outcomes first. Of all outcomes less is better; throughput follows from the
// proof interval.
const (
	ProofInterval = "proof_interval_ns" // makespan over jobs finished
	PeakLive      = "peak_live_bytes"   // host, from the first job's request on
	PeakRSS       = "peak_rss_bytes"
	DevicePeak    = "device_peak_bytes" // subject: the device
	StageTime     = "stage_time_ns"     // mean over partitions; subject: the stage
	ClassPeak     = "class_peak_bytes"  // its own highest live bytes; subject: the class
	ClassArea     = "class_gib_s"       // live bytes of jobs times time; subject: the class

	StageCPU      = "stage_cpu_ns"      // mean, where the stage owns its threads
	OpTime        = "op_time_ns"        // total of one kind of operation; subject: its name
	KernelTime    = "kernel_time_ns"    // likewise of kernels
	CopyTime      = "copy_time_ns"      // likewise of copies
	CopyBytes     = "copy_bytes"        // bytes that these moved
	ClassMade     = "class_buffers"     // how many the jobs made; subject: the class
	ClassSize     = "class_size_bytes"  // their mean capacity
	ClassLifetime = "class_lifetime_ns" // their mean time from alloc to free
	QueueWait     = "queue_wait_ns"     // mean wait of an item; subject: the resource
	QueueDepth    = "queue_depth"       // mean number that wait or are queued
	QueueMax      = "queue_depth_max"   // most that waited or were queued
	Counter       = "counter"           // growth of a sampled counter; subject: its name
	GaugeMean     = "gauge_mean"        // mean of a sampled gauge of a GPU
	Rho           = "rho"               //
)

// quantity is what is known of all metrics of one name.
type quantity struct {
	name    string
	label   string
	outcome bool
	// headline metrics must be known for a verdict of neutral.
	headline bool
	// threshold is the least change, relative, that matters.
	threshold float64
	// floor is the noise assumed of one run against another where no history tells: docs/diff.md
	// says where it comes from.
	floor float64
	// least is the least absolute change that matters: below it is the grain of the clock, of
	// pages.
	least float64
}

const (
	pageBytes  = 4096
	microsNS   = 1000
	tinyGiBSec = 1e-6
)

// quantities are all kinds of metrics in the order of a report.
var quantities = []quantity{
	{ProofInterval, "proof interval", true, true, 0.02, 0.40, microsNS},
	{PeakLive, "peak live", true, true, 0.01, 0.25, pageBytes},
	{PeakRSS, "peak RSS", true, true, 0.02, 0.25, pageBytes},
	{DevicePeak, "device peak", true, true, 0.01, 0.25, pageBytes},
	{StageTime, "stage", true, false, 0.02, 0.55, microsNS},
	{ClassPeak, "class peak", true, false, 0.01, 0.50, pageBytes},
	{ClassArea, "class held", true, false, 0.03, 0.60, tinyGiBSec},

	{StageCPU, "stage CPU", false, false, 0.02, 0.50, microsNS},
	{OpTime, "operation", false, false, 0.02, 1.00, microsNS},
	{KernelTime, "kernel", false, false, 0.02, 1.00, microsNS},
	{CopyTime, "copy", false, false, 0.02, 1.00, microsNS},
	{CopyBytes, "copied", false, false, 0.01, 0.05, pageBytes},
	{ClassMade, "buffers made", false, false, 0.01, 0.05, 0},
	{ClassSize, "buffer size", false, false, 0.01, 0.05, 1},
	{ClassLifetime, "buffer lifetime", false, false, 0.03, 0.60, microsNS},
	{QueueWait, "wait", false, false, 0.05, 1.00, microsNS},
	{QueueDepth, "depth", false, false, 0.05, 1.00, 0.01},
	{QueueMax, "deepest", false, false, 0.05, 1.00, 0},
	{Counter, "counter", false, false, 0.05, 1.00, 0},
	{GaugeMean, "gauge", false, false, 0.02, 0.30, 0},
	{Rho, "rho", false, false, 0.02, 0.50, 0},
}

var quantityOf = func() map[string]int {
	index := map[string]int{}
	for i := range quantities {
		index[quantities[i].name] = i
	}
	return index
}()

// quantity is what is known of the metric's kind.
func (m Metric) quantity() *quantity { return &quantities[quantityOf[m.Name]] }

// Outcome says whether the metric makes verdicts.
func (m Metric) Outcome() bool { return m.quantity().outcome }

// Headline says whether the metric must be known for a verdict of neutral.
func (m Metric) Headline() bool { return m.quantity().headline }

// Label is the metric's name for people: stage synthesis.
func (m Metric) Label() string {
	q := m.quantity()
	switch {
	case m.Subject == "":
		return q.label
	case m.Name == Counter || m.Name == GaugeMean:
		return m.Subject
	case m.Name == QueueMax || m.Name == QueueDepth || m.Name == QueueWait:
		return m.Subject + " " + q.label
	case strings.HasPrefix(m.Name, "class_"):
		return m.Subject + " " + strings.TrimPrefix(q.label, "class ")
	}
	return q.label + " " + m.Subject
}

// MetricNames lists the kinds of metrics: outcomes, then explanations.
func MetricNames() []string {
	names := make([]string, len(quantities))
	for i := range quantities {
		names[i] = quantities[i].name
	}
	return names
}

// Values are the metrics of one run. What is not known is not in it.
type Values map[Metric]float64

func (v Values) set(name, subject string, value float64) {
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		v[Metric{name, subject}] = value
	}
}

// sortMetrics puts metrics into the order of a report.
func sortMetrics(list []Metric) {
	slices.SortFunc(list, func(a, b Metric) int {
		return cmp.Or(cmp.Compare(quantityOf[a.Name], quantityOf[b.Name]),
			cmp.Compare(a.Subject, b.Subject))
	})
}
