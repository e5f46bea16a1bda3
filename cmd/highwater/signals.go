package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruptible is a context that the first SIGINT or SIGTERM cancels, so that the command can end
// cleanly; the second one leaves at once. What it leaves behind is told by abandoned, which may be
// nil. Call stop when the command is done.
func (ui *tui) interruptible(abandoned func() string) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	finished := make(chan struct{})
	go func() {
		select {
		case <-signals:
			ui.say("interrupted: finishing cleanly; interrupt again to leave at once")
			cancel()
		case <-finished:
			return
		}
		select {
		case <-signals:
			ui.drawing.Store(nil) // nobody will draw it any more
			ui.say("error: left at once on the second interrupt")
			if abandoned != nil {
				ui.say("hint: %s", abandoned())
			}
			os.Exit(exitInterrupted)
		case <-finished:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(finished)
		cancel()
	}
}
