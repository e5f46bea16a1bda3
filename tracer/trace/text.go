package trace

import "errors"

// ParseText reads the text form of a trace (docs/format.md). The error names the line.
func ParseText(text string) (*Data, error) { return nil, errors.New("trace.ParseText: to be written") }

// FormatText writes the text form: ParseText(FormatText(d)) is d.
func FormatText(d *Data) string { return "" }
