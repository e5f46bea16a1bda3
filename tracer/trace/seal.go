package trace

import "errors"

// SealOptions say how a recording ended.
type SealOptions struct {
	ProcessEnd string // one of the End words; "" is unknown
	Reason     string // a sentence for the manifest, or ""
	SealedBy   string // SealedByClose | SealedByRecover; "" is close
}

// Seal turns the journal of the trace directory dir into Parquet: one order over all sources, spans joined, losses
// counted in the manifest. The manifest is renamed into place last and the journal removed after it, so that a crash in
// the middle leaves the journal and sealing again works. Sealing a sealed trace only removes a left-over journal.
// The caller must own the trace: its journals are closed, or their writers dead.
func Seal(dir string, opts SealOptions) (*Manifest, error) {
	return nil, errors.New("trace.Seal: to be written")
}

// RecoverOptions say what is known about how the run ended.
type RecoverOptions struct {
	ProcessEnd string // "" is unknown: only a parent, a cgroup or a kernel report shows a kill
	Reason     string
}

// Recovery is the ledger of a recovery: what was found, what was lost and why.
type Recovery struct {
	Dir           string           `json:"dir"`
	AlreadySealed bool             `json:"already_sealed"` // nothing to do: the trace was whole
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
	Warnings      []string         `json:"warnings,omitempty"`
}

// Recover seals what a killed run left in dir. It refuses with ErrLiving while a writer lives; a trace that is already
// sealed is no error.
func Recover(dir string, opts RecoverOptions) (*Recovery, error) {
	return nil, errors.New("trace.Recover: to be written")
}
