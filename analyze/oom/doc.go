// Package oom reads what is left of a process that ran out of memory, or that is said to have:
// kernel OOM reports of any age and shape, the messages of userspace killers, exit statuses, and
// failures that are called out of memory and are not. It says which limit was hit, how much of it
// by what, what the counters leave unexplained, and what the text does not say.
//
// Terms. An event is one failure. The limit is the bound that the failing allocation met; the cause
// is why it was met. A victim is a process that was killed. A field that the text does not give is
// nil and is named in Missing: no figure is made up. All sizes are bytes.
//
// How it reads: find lines that hold a known word (finder, words), take away what stands before the
// kernel's message (prefix, stamp), read the fields by the word's rule (kernelRules, programRules),
// put lines in order and into events (assembler), then judge each event (judge, causes). Each step
// is a table with small functions; none knows of a particular report.
package oom
