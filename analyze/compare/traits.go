package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"highwater/analyze"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// Kinds of differences between runs. All but KindRun may be asked for with Options.Across.
const (
	KindMachine  = "machine"  // CPUs, RAM, GPUs, kernel
	KindCircuit  = "circuit"  // what is proved
	KindSettings = "settings" // backend among them
	KindVersions = "versions" // of the trace's schema, Go, libraries
	KindOrigin   = "origin"   // recorded, simulated, imported; the program
	KindRun      = "run"      // jobs that did not finish, lost events: no setting cures that
)

// AcrossKinds are the kinds that a comparison may be asked to look across.
func AcrossKinds() []string {
	return []string{KindMachine, KindCircuit, KindSettings, KindVersions, KindOrigin}
}

// Traits are what must be equal for two runs to be compared: kind, name, value.
type Traits struct {
	values map[trait]string
	// flaws are what makes the run no measure of anything: it was killed, events were lost.
	flaws []string

	Commit  string
	Dirty   bool
	UnixNS  int64 // start, 0 where it is not known
	Group   string
	Backend string
}

type trait struct{ kind, name string }

func compareTraits(a, b trait) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

func traitsOf(t *trace.Trace, s *analyze.Summary) Traits {
	m := &t.Manifest
	x := Traits{
		values: map[trait]string{}, Commit: m.Commit, Dirty: m.Dirty, Group: m.RunGroup,
		Backend: m.Settings[backendSetting].Value,
	}
	if m.Anchor.Kind != trace.AnchorVirtual {
		x.UnixNS = m.Anchor.UnixNS
	}
	x.machine(&m.Host)
	x.circuit(m.Circuit)
	for name, v := range m.Settings {
		switch {
		case ignoredSettings[name]:
		case name == memoryLimitSetting && !slices.Contains(givenSources, v.Source):
			x.set(KindSettings, name, "default") // 90 % of what happened to be available
		default:
			x.set(KindSettings, name, v.Value)
		}
	}
	x.set(KindVersions, "schema", strconv.Itoa(m.SchemaVersion))
	for name, v := range m.Versions {
		if !aliased(name, m.Versions) {
			x.set(KindVersions, name, v)
		}
	}
	x.set(KindOrigin, "origin", m.Origin)
	x.set(KindOrigin, "program", m.Program)
	x.flaws = flawsOf(t, s)
	return x
}

// Names of settings.
const (
	backendSetting     = "backend"
	memoryLimitSetting = "memory_limit_bytes"
)

// givenSources are those of a setting that somebody set.
var givenSources = []string{"file", "env", "flag", "set"}

// ignoredSettings change neither time nor bytes: a seed makes other proofs in the same way.
var ignoredSettings = map[string]bool{"seed": true}

// aliased says that the version also stands under its module's full path. Other modules may have the
// same one.
func aliased(name string, versions map[string]string) bool {
	if strings.Contains(name, "/") {
		return false
	}
	for full, version := range versions {
		if version == versions[name] && (strings.HasSuffix(full, "/"+name) ||
			name == "otel-sdk" && strings.HasSuffix(full, "/otel/sdk")) {
			return true
		}
	}
	return false
}

func (x *Traits) set(kind, name, value string) {
	if value != "" {
		x.values[trait{kind, name}] = value
	}
}

func (x *Traits) machine(h *trace.Host) {
	x.set(KindMachine, "cpu_model", h.CPUModel)
	x.set(KindMachine, "kernel", h.Kernel)
	x.set(KindMachine, "gpus", strings.Join(h.GPUs, ", "))
	if h.CPUs > 0 {
		x.set(KindMachine, "cpus", strconv.Itoa(h.CPUs))
	}
	if h.RAMBytes > 0 {
		// Two boots of one machine differ by some pages.
		x.set(KindMachine, "ram", units.Bytes(h.RAMBytes))
	}
}

func (x *Traits) circuit(c *trace.Circuit) {
	if c == nil {
		return
	}
	x.set(KindCircuit, "circuit", c.Name)
	for name, v := range map[string]int64{
		"constraints": c.Constraints, "domain_size": c.DomainSize, "key_bytes": c.KeyBytes,
		"wires": c.Wires,
	} {
		if v > 0 {
			x.set(KindCircuit, name, strconv.FormatInt(v, 10))
		}
	}
}

// flawsOf is why a run's figures are not those of a whole run.
func flawsOf(t *trace.Trace, s *analyze.Summary) (flaws []string) {
	m := &t.Manifest
	switch {
	case t.Live:
		flaws = append(flaws, "its trace is not sealed")
	case m.ProcessEnd != trace.EndFinished && m.ProcessEnd != "" &&
		m.Origin == trace.OriginRecorded:
		flaws = append(flaws, "its process end is "+m.ProcessEnd)
	}
	for _, x := range []struct {
		n    int
		what string
	}{
		{s.Jobs.Failed, "failed"}, {s.Jobs.Cancelled, "were given up"}, {s.Jobs.Open, "never ended"},
	} {
		if x.n > 0 {
			flaws = append(flaws, fmt.Sprintf("%d of its jobs %s", x.n, x.what))
		}
	}
	if s.LostEvents > 0 {
		flaws = append(flaws, units.Count(s.LostEvents)+" events were lost")
	}
	slices.Sort(flaws)
	return flaws
}

// Difference is something besides the code that is not equal over the runs compared.
type Difference struct {
	Kind string `json:"kind"` // machine, circuit, settings, versions, origin, run
	Name string `json:"name"`
	// the values of each side; several where its own runs differ
	Base []string `json:"base"`
	New  []string `json:"new"`
	// Accepted: asked for with --across; such a difference heads the report instead of ending it.
	Accepted bool `json:"accepted"`
}

// String is the difference in one line: presize: true -> false.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s -> %s", d.Name, ValueList(d.Base), ValueList(d.New))
}

// ValueList joins the values of one side for people: the first few where there are many.
func ValueList(values []string) string {
	if len(values) == 0 {
		return "not recorded"
	}
	const most = 3
	if len(values) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(values[:most], ", "), len(values)-most)
	}
	return strings.Join(values, " and ")
}

// differences lists what is not equal over all runs of both sides.
func differences(base, next []*Run, across []string) []Difference {
	all := map[trait]bool{}
	for _, r := range slices.Concat(base, next) {
		for k := range r.Traits.values {
			all[k] = true
		}
	}
	list := []Difference{}
	for k := range all {
		d := Difference{
			Kind: k.kind, Name: k.name, Base: valuesOf(base, k), New: valuesOf(next, k),
			Accepted: slices.Contains(across, k.kind),
		}
		if len(d.Base) == 1 && slices.Equal(d.Base, d.New) {
			continue
		}
		list = append(list, d)
	}
	list = append(list, flawDifferences(base, next)...)
	kinds := append(AcrossKinds(), KindRun)
	slices.SortFunc(list, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(a.Name, b.Name))
	})
	return list
}

// valuesOf are the values that the runs of a side have of a trait; a run without one counts as
// "not recorded" beside others that have one.
func valuesOf(runs []*Run, k trait) []string {
	set := map[string]bool{}
	for _, r := range runs {
		v, ok := r.Traits.values[k]
		if !ok {
			v = "not recorded"
		}
		set[v] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// flawDifferences lists runs that are no measure of anything.
func flawDifferences(base, next []*Run) (list []Difference) {
	for side, runs := range [][]*Run{base, next} {
		for _, r := range runs {
			for _, flaw := range r.Traits.flaws {
				d := Difference{Kind: KindRun, Name: r.Name, Base: []string{}, New: []string{}}
				if side == 0 {
					d.Base = append(d.Base, flaw)
				} else {
					d.New = append(d.New, flaw)
				}
				list = append(list, d)
			}
		}
	}
	return list
}
