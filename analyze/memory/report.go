package memory

// Report is what Build found.
type Report struct{}
