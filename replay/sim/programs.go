package sim

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"highwater/replay/pipeline"
)

// Programs keeps what models compile to, for models that differ in the numbers of their policy alone,
// as those of a sweep do: compiling took more of a sweep's time than simulating. The zero value is
// ready; goroutines may share it. The models that it was given must not be changed while it is in use.
type Programs struct {
	mu   sync.Mutex
	kept []*program // the latest last
}

// maxKept bounds the steps of the programs that are kept, 40 bytes each.
const maxKept = 1 << 20

// New is sim.New.
func (k *Programs) New(m *pipeline.Model) (*Simulator, error) { return k.simulator(m, forStats) }

func (k *Programs) simulator(m *pipeline.Model, d detail) (*Simulator, error) {
	p, err := k.program(m, d)
	if err != nil {
		return nil, fmt.Errorf("compile model: %w", err)
	}
	return newSimulator(m, p), nil
}

// program is what m compiles to. Where it is kept, only the settings of m can be at fault.
func (k *Programs) program(m *pipeline.Model, d detail) (*program, error) {
	if p := k.find(m, d); p != nil {
		return p, m.ValidateSettings()
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	p := compile(m, d)
	if len(p.steps) > maxSteps {
		return nil, fmt.Errorf("%d steps are more than the %d one simulation holds", len(p.steps), maxSteps)
	}
	k.keep(p)
	return p, nil
}

func (k *Programs) find(m *pipeline.Model, d detail) *program {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range slices.Backward(k.kept) {
		if p.detail == d && p.serves(m) {
			return p
		}
	}
	return nil
}

// keep adds a program, and lets the oldest go that are too much. Two goroutines may have compiled the
// same at once; then either one serves.
func (k *Programs) keep(p *program) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, p)
	steps := 0
	for i, p := range slices.Backward(k.kept) {
		if steps += len(p.steps); steps > maxKept {
			k.kept = slices.Delete(k.kept, 0, i+1)
			return
		}
	}
}

// serves says whether compiling m gives p: all is the same but the numbers of the policy.
func (p *program) serves(m *pipeline.Model) bool {
	a, b := *p.model, *m
	if a.Policy.EarlyFree != b.Policy.EarlyFree || a.Policy.SplitProving != b.Policy.SplitProving ||
		(a.Policy.ByteBudget == pipeline.Unbounded) != (b.Policy.ByteBudget == pipeline.Unbounded) {
		return false
	}
	a.Policy, b.Policy = pipeline.Policy{}, pipeline.Policy{}
	return same(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem())
}

// same compares two structs field by field, and slices by where they lie.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		return a.Len() == b.Len() && a.UnsafePointer() == b.UnsafePointer()
	}
	return a.Equal(b)
}
