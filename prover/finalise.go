package prover

import (
	"context"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// finalise ends a started partition: b_g2 where it was left to it, blinding and assembly, then
// everything is freed, then the proof is verified. Verification comes after the last free because
// it needs none of the buffers; it takes a few milliseconds (three pairings), so it does not slow
// the stages beside it.
func (pl *pipeline) finalise(p *partition, worker int32) {
	if stage, err := pl.assemble(p, worker); err != nil {
		pl.giveUp(p, stage, err)
		return
	}
	pl.count.proved.Add(1)
	pl.finish(p)
	if worker < 0 {
		pl.verify(p)
		return
	}
	pl.finalisers.Go(func() { pl.verify(p) }) // a GPU worker does not wait for it
}

func (pl *pipeline) assemble(p *partition, worker int32) (string, error) {
	if pl.splitProving {
		if err := pl.bG2(p, worker); err != nil {
			return trace.StageBG2, err
		}
	}
	if err := context.Cause(p.job.ctx); err != nil {
		return trace.StageFinalise, err
	}
	p.work.handoff(p.owner(trace.StageFinalise, worker))
	spec := stageSpec{name: trace.StageFinalise, worker: worker, threads: 1}
	return trace.StageFinalise, pl.stage(p, spec, func(context.Context, tracer.Owner) error {
		return p.work.finalise()
	})
}

// verify checks the proof; the partition holds nothing any more.
func (pl *pipeline) verify(p *partition) {
	spec := stageSpec{name: trace.StageVerify, worker: -1, threads: 1}
	err := pl.stage(p, spec, func(context.Context, tracer.Owner) error { return p.work.verify() })
	if err != nil {
		p.job.fail(failure{partition: p.index, stage: trace.StageVerify, err: err})
		pl.settle(p, nil)
		return
	}
	pl.count.verified.Add(1)
	pl.settle(p, p.work.proof())
}
