package memory

// OwnedAtPeak is what one partition, job or nobody held of one class at the peak of live bytes.
type OwnedAtPeak struct {
	Job, Partition int64
	Class          string
	Stage          string // that allocated the bytes or was handed them
	Bytes, Buffers int64
}

// AtPeak visits what made up the peak of t, which is l.Host or one of l.Devices, in no order. An
// owner and class may come several times: add them up. The sum of Bytes is t.Peak.LiveBytes, but
// for what a damaged ledger cannot attribute.
func (l *Ledger) AtPeak(t *Tally, visit func(OwnedAtPeak)) {
	t.atPeak(func(k cellKey, a amounts) {
		visit(OwnedAtPeak{
			Job: k.owner.Job, Partition: k.owner.Partition, Class: l.words.text[k.class],
			Stage: l.words.text[k.stage], Bytes: a.bytes, Buffers: a.buffers,
		})
	})
}
