-- Views over a Highwater trace, for DuckDB. What the columns mean stands in docs/format.md.
--
--   duckdb -cmd "SET VARIABLE trace = 'run.hw'" -init notebooks/trace.sql
--
-- One order holds over all tables of a trace: seq. Every "from … until" below is half open, in seq.

CREATE VIEW buffers AS FROM read_parquet(getvariable('trace') || '/buffers.parquet');
CREATE VIEW queues  AS FROM read_parquet(getvariable('trace') || '/queues.parquet');
CREATE VIEW spans   AS FROM read_parquet(getvariable('trace') || '/spans.parquet');
CREATE VIEW samples AS FROM read_parquet(getvariable('trace') || '/samples.parquet');

CREATE TABLE resources AS
SELECT unnest(resources, recursive := true)
FROM read_json(getvariable('trace') || '/manifest.json',
               columns = {resources: 'STRUCT(name VARCHAR, kind VARCHAR, capacity BIGINT)[]'});

-- Queue events with the kind of their resource.
CREATE VIEW operations AS
SELECT q.*, r.kind FROM queues q JOIN resources r ON r.name = q.resource;

-- Peaks, rho and intervals are taken from the first job's request on.
CREATE TABLE job_phase AS
SELECT min(seq) AS begin_seq, arg_min(time_ns, seq) AS begin_ns
FROM operations WHERE kind = 'job' AND event = 'request';

-- Live host bytes: the running sum over the whole trace. A child's bytes are inside its parent's.
CREATE TABLE live AS
SELECT seq, time_ns, live_bytes, lead(seq, 1, 1::BIGINT << 62) OVER (ORDER BY seq) AS until_seq
FROM (SELECT seq, time_ns,
             (sum(delta_bytes) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING))::BIGINT AS live_bytes
      FROM buffers WHERE space <> 'device' AND parent_id = 0);

CREATE TABLE peak AS
SELECT greatest(seq, begin_seq) AS seq, greatest(time_ns, begin_ns) AS time_ns, live_bytes
FROM live, job_phase WHERE until_seq > begin_seq
ORDER BY live_bytes DESC, seq LIMIT 1;

-- A buffer between two of its events: constant class, owner and size.
CREATE TABLE pieces AS
SELECT buffer_id, parent_id, class, job, "partition", capacity_bytes AS bytes,
       seq AS from_seq, lead(seq, 1, 1::BIGINT << 62) OVER life AS until_seq
FROM buffers WHERE space <> 'device'
WINDOW life AS (PARTITION BY buffer_id ORDER BY seq)
QUALIFY event <> 'free';

-- Whose bytes they are: a buffer cut from a pool counts for itself, and the pool for the rest. A pool's bytes that
-- are lent stand as a negative piece of no buffer.
CREATE TABLE shares AS
SELECT buffer_id, parent_id = 0 AS whole, class, job, "partition", bytes, from_seq, until_seq FROM pieces
UNION ALL
SELECT NULL, false, pool.class, pool.job, pool."partition", -cut.bytes,
       greatest(pool.from_seq, cut.from_seq), least(pool.until_seq, cut.until_seq)
FROM pieces cut JOIN pieces pool ON pool.buffer_id = cut.parent_id
     AND pool.from_seq < cut.until_seq AND cut.from_seq < pool.until_seq;

-- Where a partition is: the furthest place that its queue events and spans have reached.
CREATE TABLE places AS
WITH
ranks(rank, place) AS (VALUES
    (0, 'admission'), (1, 'budget'), (2, 'permit'), (3, 'synthesis'), (4, 'blocked_send'), (5, 'channel'),
    (6, 'pickup'), (7, 'lock_wait'), (8, 'gpu'), (9, 'finalise')),
queue_steps(kind, event, rank) AS (VALUES
    ('budget', 'request', 1), ('permit', 'request', 2), ('permit', 'acquire', 3), ('channel', 'send', 4),
    ('channel', 'sent', 5), ('channel', 'recv', 6), ('lock', 'request', 7), ('lock', 'acquire', 8)),
steps AS (
    SELECT job, "partition", seq, time_ns, rank FROM operations JOIN queue_steps USING (kind, event)
    UNION ALL
    SELECT job, "partition", seq, time_ns, 3 FROM operations
    WHERE kind = 'budget' AND event = 'acquire' AND NOT EXISTS (FROM resources WHERE kind = 'permit')
    UNION ALL
    SELECT job, "partition", begin_seq, begin_ns, 3 FROM spans WHERE kind = 'stage' AND stage = 'synthesis'
    UNION ALL
    SELECT job, "partition", begin_seq, begin_ns, 8 FROM spans
    WHERE kind = 'stage' AND stage = 'prove_start' AND NOT EXISTS (FROM resources WHERE kind = 'lock')
    UNION ALL
    SELECT job, "partition", end_seq, end_ns, 9 FROM spans
    WHERE kind = 'stage' AND stage = 'prove_start' AND end_seq IS NOT NULL
    UNION ALL -- until its first step a partition waits for its job's admission
    SELECT DISTINCT job, "partition", 0, 0, 0 FROM pieces WHERE "partition" >= 0),
furthest AS (
    SELECT *, max(rank) OVER (PARTITION BY job, "partition" ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM steps WHERE "partition" >= 0)
SELECT job, "partition", place, rank, seq AS from_seq, time_ns AS from_ns,
       lead(seq, 1, 1::BIGINT << 62) OVER later AS until_seq, lead(time_ns) OVER later AS until_ns
FROM furthest JOIN ranks USING (rank) WHERE before IS NULL OR rank > before
WINDOW later AS (PARTITION BY job, "partition" ORDER BY seq);

-- When a partition had synthesised and no longer held a permit, and when it was taken up.
CREATE VIEW permits AS
SELECT job, "partition",
       min(seq)     FILTER (kind = 'permit' AND event = 'release') AS released_seq,
       min(time_ns) FILTER (kind = 'permit' AND event = 'release') AS released_ns,
       min(time_ns) FILTER (kind = 'channel' AND event = 'send') AS send_ns,
       min(time_ns) FILTER (kind = 'channel' AND event = 'sent') AS sent_ns,
       min(time_ns) FILTER (kind = 'channel' AND event = 'recv') AS recv_ns
FROM operations WHERE "partition" >= 0 GROUP BY ALL;

-- Bytes by class and place: each share, cut where its owner changed place.
CREATE TABLE held AS
SELECT buffer_id, whole, class, job, "partition", bytes,
       coalesce(place, CASE WHEN job < 0 THEN 'resident' ELSE 'job' END) AS place,
       greatest(s.from_seq, coalesce(w.from_seq, 0)) AS from_seq,
       least(s.until_seq, coalesce(w.until_seq, s.until_seq)) AS until_seq
FROM shares s LEFT JOIN places w USING (job, "partition")
WHERE w.place IS NULL OR (w.from_seq < s.until_seq AND s.from_seq < w.until_seq);

-- Moments to draw: in each of 600 slices of the job phase the highest and the lowest one, so that peaks survive.
CREATE TABLE moments AS
WITH slices AS (
    SELECT seq, time_ns, live_bytes,
           (600 * (time_ns - min(time_ns) OVER ()) // greatest(1, max(time_ns) OVER () - min(time_ns) OVER ())) AS slice
    FROM live, job_phase WHERE seq >= begin_seq)
SELECT DISTINCT seq, time_ns FROM slices
QUALIFY row_number() OVER (PARTITION BY slice ORDER BY live_bytes DESC, seq) = 1
     OR row_number() OVER (PARTITION BY slice ORDER BY live_bytes, seq) = 1
     OR time_ns = max(time_ns) OVER ();
