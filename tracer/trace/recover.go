package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
)

// RecoverOptions say what is known about how the run ended.
type RecoverOptions struct {
	ProcessEnd string // "" is unknown: only a parent, a cgroup or a kernel report shows a kill
	Reason     string
}

// Recovery is the ledger of a recovery: what was found, what was lost and why.
type Recovery struct {
	Dir           string           `json:"dir"`
	AlreadySealed bool             `json:"already_sealed"` // nothing to do: the trace is whole
	Manifest      *Manifest        `json:"-"`
	Events        map[string]int64 `json:"events"` // recovered, by kind: buffer, queue, sample, span_begin, span_end
	Blocks        int64            `json:"blocks"`
	TornRecords   int64            `json:"torn_records"` // rejected: never acknowledged, or damaged
	Lost          map[string]int64 `json:"lost"`         // counted losses by reason
	OpenSpans     int64            `json:"open_spans"`
	LiveBuffers   int64            `json:"live_buffers"`
	LiveBytes     int64            `json:"live_bytes"` // host bytes of buffers live at the end
	Sources       int64            `json:"sources"`
	LastNS        int64            `json:"last_ns"` // time of the last recovered event, Null without one
	// DamagedJournal is where the journal was kept because it is damaged; "": it was removed.
	DamagedJournal string   `json:"damaged_journal,omitempty"`
	Warnings       []string `json:"warnings,omitempty"`
}

// MarshalJSON writes an unknown LastNS as null.
func (r Recovery) MarshalJSON() ([]byte, error) {
	type plain Recovery
	var last *int64
	if r.LastNS != Null {
		last = &r.LastNS
	}
	return json.Marshal(struct {
		plain
		LastNS *int64 `json:"last_ns"`
	}{plain(r), last})
}

// Recover seals what a killed run left in dir. It refuses with ErrLiving while a writer lives; a
// trace that is already sealed and whole is no error, and says so. A trace without a readable
// manifest gets one from its journal, with a warning. A damaged journal is kept beside the trace.
func Recover(dir string, opts RecoverOptions) (*Recovery, error) {
	r, err := seal(dir, SealOptions{
		ProcessEnd: opts.ProcessEnd, Reason: opts.Reason,
		SealedBy: SealedByRecover,
	}, true)
	if err != nil {
		return nil, fmt.Errorf("recover trace: %w", err)
	}
	return r, nil
}

// alreadySealed checks the tables of a sealed trace; where they are whole, a journal that a crash
// left beside them goes.
func alreadySealed(dir string, m *Manifest) (*Recovery, error) {
	if err := checkTables(dir, m); err != nil {
		return nil, err
	}
	r := &Recovery{
		Dir: dir, AlreadySealed: true, Manifest: m, Events: map[string]int64{},
		Lost: map[string]int64{}, LastNS: Null,
	}
	return r, r.settleJournal()
}

// checkTables reads all rows of a sealed trace.
func checkTables(dir string, m *Manifest) error {
	t, err := openSealed(dir, m)
	if err != nil {
		return err
	}
	defer t.Close()
	return errors.Join(readable(t.Spans()), readable(t.Buffers()), readable(t.Queues()),
		readable(t.Samples()))
}

func readable[T any](rows iter.Seq2[*T, error]) error {
	for _, err := range rows {
		if err != nil {
			return err
		}
	}
	return nil
}

// settleJournal removes the journal of the sealed trace, or keeps it under another name where it is
// damaged.
func (r *Recovery) settleJournal() error {
	if !hasJournal(r.Dir) || !r.Manifest.damagedJournal() {
		return removeJournal(r.Dir)
	}
	kept := journalDir(r.Dir) + ".damaged"
	for n := 2; ; n++ {
		if _, err := os.Lstat(kept); errors.Is(err, fs.ErrNotExist) {
			break
		}
		kept = fmt.Sprintf("%s.damaged-%d", journalDir(r.Dir), n)
	}
	if err := os.Rename(journalDir(r.Dir), kept); err != nil {
		return fmt.Errorf("keep the damaged journal: %w", err)
	}
	r.DamagedJournal = kept
	r.Warnings = append(r.Warnings,
		fmt.Sprintf("the damaged journal is kept as %s: remove it when nobody needs it", kept))
	return removeTemporary(r.Dir)
}

// newRecovery gathers the ledger of a sealing.
func newRecovery(dir string, m *Manifest, in *journalData, c *converter) *Recovery {
	t := &c.tally
	r := &Recovery{
		Dir: dir, Manifest: m,
		Events: map[string]int64{
			"buffer": t.buffers, "queue": t.queues, "sample": t.samples, "span_begin": t.begins,
			"span_end": t.ends,
		},
		Lost:      map[string]int64{},
		OpenSpans: t.openSpans, LiveBuffers: int64(len(c.ledger)), LiveBytes: c.ledger.liveBytes(),
		Sources: int64(len(in.sources)), LastNS: t.lastNS,
	}
	for _, l := range m.Loss {
		r.Lost[l.Reason] += l.Count
	}
	for i := range in.sources {
		l := in.sources[i].reader.Ledger()
		r.Blocks += int64(l.Blocks)
		r.TornRecords += l.Torn
		for _, d := range l.Damage {
			r.Warnings = append(r.Warnings, d.Error())
		}
	}
	for _, d := range in.damaged {
		r.Warnings = append(r.Warnings, "nothing could be read of a source: "+d.Error())
	}
	r.Warnings = append(r.Warnings, unknownLosses(m)...)
	return r
}
