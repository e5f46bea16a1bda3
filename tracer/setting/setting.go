// Package setting is the one table of settings: name, type, default, bounds, meaning. The prover, the replay, the command's
// flags, files and environment variables, the manifest and the docs all read it, so that a setting has one name
// everywhere: partition_workers, --partition-workers, HIGHWATER_PARTITION_WORKERS.
package setting

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"highwater/internal/units"
)

// Kind is the type of a setting's value.
type Kind int

// Kinds of values.
const (
	Int    Kind = iota // a whole number between Min and Max; or Unbounded where the setting allows it
	Bytes              // a byte count: 1073741824, 1GiB, 512MiB
	Word               // one of Words
	Bool               // true | false
	String             // free text
	Uint               // an unsigned 64-bit number, decimal or 0x…
)

// Unbounded is the value of an Int or Bytes setting that has no bound, written "unbounded".
const Unbounded int64 = -1

// Setting is one row of the table.
type Setting struct {
	Name      string // snake_case
	Kind      Kind
	Default   string
	Words     []string // for Word
	Min, Max  int64    // for Int and Bytes, inclusive
	Unbounded bool     // "unbounded" is allowed
	Off       string   // a further word that means "not in use", "" where there is none
	Replay    bool     // replay can vary it
	Doc       string   // one sentence, with the unit
}

// Table is every setting, in the order in which docs and help show them.
func Table() []Setting { return table }

var table = []Setting{
	{Name: "circuit", Kind: Word, Default: "label", Words: []string{"label", "mimc"}, Doc: "What is proved: label is a PoRep-like partition (SHA-256 labels, Poseidon2 Merkle path, 0/1-heavy scalars), mimc a MiMC chain (dense scalars)."},
	{Name: "log_size", Kind: Int, Default: "16", Min: 10, Max: 27, Doc: "Base-two logarithm of the NTT domain; the circuit is filled to just below it."},
	{Name: "jobs", Kind: Int, Default: "1", Min: 1, Max: 1 << 20, Replay: true, Doc: "How many jobs (proofs of P partitions) to run."},
	{Name: "partitions", Kind: Int, Default: "1", Min: 1, Max: 1 << 16, Replay: true, Doc: "Partitions a job."},
	{Name: "seed", Kind: Uint, Default: "1", Doc: "Seed of keys, witnesses and blinding; equal seeds give equal proof bytes."},
	{Name: "backend", Kind: Word, Default: "auto", Words: []string{"cpu", "device", "auto"}, Doc: "Who runs NTTs and MSMs; auto takes the device where there is one and says which it took."},
	{Name: "backend_threads", Kind: Int, Default: "0", Min: 0, Max: 4096, Doc: "Threads of one GPU worker on the CPU backend; 0 means one a CPU."},
	{Name: "devices", Kind: Int, Default: "1", Min: 1, Max: 64, Replay: true, Doc: "Devices that prove, from number 0 on, each with its own lock and copy of the key; the CPU backend counts as one."},
	{Name: "arena_bytes", Kind: Bytes, Default: "auto", Off: "auto", Min: 1 << 20, Max: math.MaxInt64, Doc: "Device memory taken at the start, a device; everything there is cut from it. auto is nine tenths of what is free."},
	{Name: "msm_scratch_bytes", Kind: Bytes, Default: "auto", Off: "auto", Min: 1 << 20, Max: math.MaxInt64, Doc: "Bound of one MSM's scratch on the device, which then works in groups of windows; auto leaves the arena as the bound."},
	{Name: "pinned", Kind: Word, Default: "pool", Words: []string{"pageable", "register", "pool"}, Doc: "How a, b, c and W reach a device: from ordinary memory, from the same memory page-locked for the time, or by way of page-locked buffers taken before the run."},
	{Name: "setup", Kind: Word, Default: "cpu", Words: []string{"cpu", "device"}, Doc: "Where missing keys are computed; both give the same bytes."},
	{Name: "gogc", Kind: Int, Default: "off", Off: "off", Min: 10, Max: 10000, Doc: "Go garbage collector percentage in the proving phase; off collects only after each MSM and at the memory limit."},
	{Name: "memory_limit_bytes", Kind: Bytes, Default: "unbounded", Unbounded: true, Min: 1 << 26, Max: math.MaxInt64, Doc: "Go's soft memory limit (GOMEMLIMIT), the safety net while gogc is off: unbounded is then 90 % of the memory limit on the process, less keys and system."},
	{Name: "sample_hz", Kind: Int, Default: "20", Min: 0, Max: 1000, Doc: "Samples a second of RSS, faults, CPU and pressure; 0 records none."},
	{Name: "partition_workers", Kind: Int, Default: "2", Min: 1, Max: 4096, Replay: true, Doc: "Synthesis permits: partitions that may be in synthesis at once."},
	{Name: "gpu_workers", Kind: Int, Default: "1", Min: 1, Max: 64, Replay: true, Doc: "GPU workers a device. The device lock still lets one start run at a time; a second worker has its partition ready behind it, staged where the backend stages."},
	{Name: "gpu_threads", Kind: Int, Default: "0", Min: 0, Max: 4096, Doc: "Threads of b_g2 alone, on the CPU; 0 means one a CPU."},
	{Name: "b_g2", Kind: Word, Default: "cpu", Words: []string{"cpu", "device"}, Doc: "Where the G2 MSM runs; device needs backend device."},
	{Name: "jobs_in_flight", Kind: Int, Default: "unbounded", Unbounded: true, Min: 1, Max: 1 << 20, Replay: true, Doc: "Jobs admitted at once (closed loop)."},
	{Name: "channel_capacity", Kind: Int, Default: "1", Unbounded: true, Min: 0, Max: 1 << 20, Replay: true, Doc: "Slots between synthesis and the GPU workers; 0 is a rendezvous."},
	{Name: "permit_release", Kind: Word, Default: "send_accepted", Words: []string{"synth_end", "send_accepted", "gpu_pickup", "freed"}, Replay: true, Doc: "When a partition gives its synthesis permit back."},
	{Name: "early_free", Kind: Bool, Default: "true", Replay: true, Doc: "Free a, b, c when prove_start returns instead of after finalise."},
	{Name: "presize", Kind: Bool, Default: "true", Doc: "Reserve a, b, c and W up front instead of growing them by doubling."},
	{Name: "split_proving", Kind: Bool, Default: "true", Replay: true, Doc: "Run b_g2 outside the GPU lock, in the finaliser, so that the GPU worker takes the next partition."},
	{Name: "byte_budget", Kind: Bytes, Default: "unbounded", Unbounded: true, Min: 1 << 20, Max: math.MaxInt64, Replay: true, Doc: "Bytes that partitions may reserve before synthesis; a job that could never fit fails at once."},
	{Name: "queue_order", Kind: Word, Default: "fifo", Words: []string{"fifo", "priority"}, Replay: true, Doc: "Order of the permit queue and the channel: by arrival, or by (job, partition)."},
}

// Lookup finds a setting by name; the error names the nearest one.
func Lookup(name string) (Setting, error) {
	// of a short name no more than half may differ: foo is no jobs
	best, bestDist := "", min(4, len(name)/2+1)
	for _, s := range table {
		if s.Name == name {
			return s, nil
		}
		if d := editDistance(s.Name, name); d < bestDist {
			best, bestDist = s.Name, d
		}
	}
	if best != "" {
		return Setting{}, fmt.Errorf("unknown setting %q: did you mean %q?", name, best)
	}
	return Setting{}, fmt.Errorf("unknown setting %q: see `highwater prove --help` for the list", name)
}

// Flag is the setting's command-line flag, without dashes in front.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Name, "_", "-") }

// Env is the setting's environment variable.
func (s Setting) Env() string { return "HIGHWATER_" + strings.ToUpper(s.Name) }

// Values is a full set of settings: each table row's value in canonical text and where it came from.
type Values struct {
	value  map[string]string
	source map[string]string
}

// Defaults is every setting at its default.
func Defaults() *Values {
	v := &Values{map[string]string{}, map[string]string{}}
	for _, s := range table {
		v.value[s.Name], v.source[s.Name] = s.Default, "default"
	}
	return v
}

// Clone copies v.
func (v *Values) Clone() *Values {
	c := &Values{map[string]string{}, map[string]string{}}
	for k := range v.value {
		c.value[k], c.source[k] = v.value[k], v.source[k]
	}
	return c
}

// Set parses text and stores it with its source (default | file | env | flag | trace | model | set).
func (v *Values) Set(name, text, source string) error {
	s, err := Lookup(name)
	if err != nil {
		return err
	}
	canon, err := s.Parse(text)
	if err != nil {
		return err
	}
	v.value[name], v.source[name] = canon, source
	return nil
}

// Text is the canonical text of a setting; it panics on a name that is not in the table.
func (v *Values) Text(name string) string { v.must(name); return v.value[name] }

// Source says where the value came from.
func (v *Values) Source(name string) string { v.must(name); return v.source[name] }

// Int is the value of an Int, Bytes or Uint setting; Unbounded where it has no bound or is off.
func (v *Values) Int(name string) int64 {
	t := v.Text(name)
	if n, err := strconv.ParseInt(t, 10, 64); err == nil {
		return n
	}
	return Unbounded
}

// Uint is the value of a Uint setting.
func (v *Values) Uint(name string) uint64 {
	n, _ := strconv.ParseUint(v.Text(name), 10, 64)
	return n
}

// Bool is the value of a Bool setting.
func (v *Values) Bool(name string) bool { return v.Text(name) == "true" }

func (v *Values) must(name string) {
	if _, ok := v.value[name]; !ok {
		panic("setting: no setting named " + name)
	}
}

// Names lists the settings of v in alphabetical order.
func (v *Values) Names() []string {
	names := make([]string, 0, len(v.value))
	for n := range v.value {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Parse checks text and gives its canonical form: decimal numbers without separators, bytes in bytes, lower-case words.
func (s Setting) Parse(text string) (string, error) {
	t := strings.TrimSpace(text)
	word := strings.ToLower(t)
	if s.Unbounded && word == "unbounded" || s.Off != "" && word == s.Off {
		return word, nil
	}
	switch s.Kind {
	case Int, Bytes:
		return s.parseNumber(t)
	case Uint:
		n, err := strconv.ParseUint(t, 0, 64)
		if err != nil {
			return "", fmt.Errorf("%s: %q is not an unsigned 64-bit number", s.Name, text)
		}
		return strconv.FormatUint(n, 10), nil
	case Bool:
		b, err := strconv.ParseBool(word)
		if err != nil {
			return "", fmt.Errorf("%s: %q is neither true nor false", s.Name, text)
		}
		return strconv.FormatBool(b), nil
	case Word:
		for _, w := range s.Words {
			if w == word {
				return w, nil
			}
		}
		return "", fmt.Errorf("%s: %q is not one of %s", s.Name, text, strings.Join(s.Words, ", "))
	}
	return t, nil
}

func (s Setting) parseNumber(t string) (string, error) {
	n, err := strconv.ParseInt(t, 10, 64)
	if err != nil && s.Kind == Bytes {
		n, err = units.ParseBytes(t)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %q is not %s", s.Name, t, s.shape())
	}
	if s.Kind == Bytes && n < s.Min {
		return "", fmt.Errorf("%s: %s is outside its range: %s or more", s.Name, units.Bytes(n),
			units.Bytes(s.Min))
	}
	if n < s.Min || n > s.Max {
		return "", fmt.Errorf("%s: %d is outside %d..%d", s.Name, n, s.Min, s.Max)
	}
	return strconv.FormatInt(n, 10), nil
}

func (s Setting) shape() string {
	what := "a whole number"
	if s.Kind == Bytes {
		what = "a number of bytes such as 512MiB"
	}
	if s.Unbounded {
		what += ` or "unbounded"`
	}
	if s.Off != "" {
		what += fmt.Sprintf(" or %q", s.Off)
	}
	return what
}

func editDistance(a, b string) int {
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		cur := make([]int, len(b)+1)
		cur[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j]+cost, prev[j+1]+1, cur[j]+1)
		}
		prev = cur
	}
	return prev[len(b)]
}
