package trace

import (
	"fmt"
	"path/filepath"
	"slices"

	"highwater/tracer/journal"
)

// Reasons of losses that reading a journal finds, besides those that its writer counted
// (journal.LossReasons, journal.MissingEvents).
const (
	LossTorn            = "torn"             // records half written; at a kill never acknowledged
	LossMissingBlocks   = "missing_blocks"   // blocks (of up to 63 records) that are not there
	LossMissingBytes    = "missing_bytes"    // by which segments are shorter than they were made
	LossMissingSegments = "missing_segments" // segments that are not there
	LossDamagedBytes    = "damaged_bytes"    // bytes of segments that could not be used
	LossDamagedSource   = "damaged_source"   // sources of which nothing could be read
	LossUnresolvedWord  = "unresolved_word"  // words without their text; they read "?" and a number
	LossStrayEnd        = "stray_end"        // ends of spans whose begin is missing
)

// uncounted says of what a loss is a count where it is not of events: nobody knows how many of
// these stood there.
var uncounted = map[string]string{
	LossMissingBlocks: "missing blocks", LossMissingBytes: "missing bytes",
	LossMissingSegments: "missing segments", LossDamagedBytes: "unusable bytes",
	LossDamagedSource: "unusable sources",
}

// losses are the manifest's entries for what is missing.
func losses(in *journalData, c *converter) []Loss {
	var out []Loss
	add := func(writer, reason string, count int64) {
		if count > 0 {
			out = append(out, Loss{Writer: writer, Count: count, Reason: reason})
		}
	}
	for i := range in.sources {
		s := &in.sources[i]
		l := s.reader.Ledger()
		for _, x := range l.Losses {
			writer := s.head.Source
			if x.Writer >= 0 {
				writer = fmt.Sprintf("%s/%d", s.head.Source, x.Writer)
			}
			out = append(out, Loss{
				Writer: writer, FromNS: x.FromNS, ToNS: x.ToNS, Count: x.Count,
				Reason: x.Reason,
			})
		}
		add(s.head.Source, LossTorn, l.Torn)
		add(s.head.Source, LossMissingBlocks, l.MissingBlocks)
		add(s.head.Source, LossMissingBytes, l.MissingBytes)
		add(s.head.Source, LossMissingSegments, l.MissingSegments)
		add(s.head.Source, LossDamagedBytes, l.DamagedBytes)
		add(s.head.Source, LossUnresolvedWord, l.UnresolvedWords)
	}
	for _, d := range in.damaged {
		name := sourceOf(in.dir, d)
		add(name, LossDamagedSource, 1)
		add(name, LossDamagedBytes, d.Bytes)
	}
	add("", LossStrayEnd, c.tally.strayEnds)
	return out
}

// sourceOf is the source that a damaged file belongs to, by its folder.
func sourceOf(dir string, d *journal.DamageError) string {
	name := d.File
	for filepath.Dir(name) != journalDir(dir) && filepath.Dir(name) != name {
		name = filepath.Dir(name)
	}
	return filepath.Base(name)
}

// unknownLosses says in words for which losses nobody knows how many events they cost.
func unknownLosses(m *Manifest) []string {
	var out []string
	for _, l := range m.Loss {
		if what, ok := uncounted[l.Reason]; ok {
			out = append(out, fmt.Sprintf(
				"source %s: %s: %d; how many events stood there is unknown", l.Writer, what, l.Count))
		}
	}
	return out
}

// damagedJournal tells whether the trace was sealed from a journal that somebody may want to look
// at again: more is missing than a kill explains, or nothing at all could be read.
func (m *Manifest) damagedJournal() bool {
	empty := !slices.ContainsFunc(m.Tables, func(t Table) bool { return t.Rows > 0 })
	return slices.ContainsFunc(m.Loss, func(l Loss) bool {
		_, unknown := uncounted[l.Reason]
		return unknown || l.Reason == journal.MissingEvents || l.Reason == LossTorn && empty
	})
}
