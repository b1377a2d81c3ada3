import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * Remote storage in a folder (KIP-405) where every other read of a segment, the first too, takes `slow.ms`: as an object
 * store that has to fetch first, has it at hand when it is asked again, and then forgets.
 */
public class SlowRemoteStore implements RemoteStorageManager {
    private final Map<Path, Integer> reads = new ConcurrentHashMap<>();
    private Path folder;
    private long slowMs;

    @Override
    public void configure(Map<String, ?> configs) {
        folder = Path.of((String) configs.get("folder"));
        slowMs = Long.parseLong((String) configs.get("slow.ms"));
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        try {
            Path into = Files.createDirectories(folderOf(segment));
            Files.copy(data.logSegment(), into.resolve("log"), StandardCopyOption.REPLACE_EXISTING);
            copy(data.offsetIndex(), into, IndexType.OFFSET);
            copy(data.timeIndex(), into, IndexType.TIMESTAMP);
            copy(data.producerSnapshotIndex(), into, IndexType.PRODUCER_SNAPSHOT);
            if (data.transactionIndex().isPresent()) {
                copy(data.transactionIndex().get(), into, IndexType.TRANSACTION);
            }
            byte[] epochs = new byte[data.leaderEpochIndex().remaining()];
            data.leaderEpochIndex().duplicate().get(epochs);
            Files.write(into.resolve(IndexType.LEADER_EPOCH.name()), epochs);
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
        return Optional.empty();
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return fetchLogSegment(segment, start, Integer.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        Path file = folderOf(segment).resolve("log");
        if (reads.merge(file, 1, Integer::sum) % 2 == 1) {
            sleepThoughInterrupted();
        }
        try (InputStream in = Files.newInputStream(file)) {
            byte[] all = in.readAllBytes();
            int last = (int) Math.min(all.length, end + 1L);
            return new ByteArrayInputStream(all, start, Math.max(0, last - start));
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        Path file = folderOf(segment).resolve(type.name());
        if (!Files.exists(file)) {
            throw new RemoteResourceNotFoundException("no " + type + " of " + segment);
        }
        try {
            return new ByteArrayInputStream(Files.readAllBytes(file));
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        Path its = folderOf(segment);
        try {
            for (String name : Set.of("log", "OFFSET", "TIMESTAMP", "PRODUCER_SNAPSHOT", "TRANSACTION", "LEADER_EPOCH")) {
                Files.deleteIfExists(its.resolve(name));
            }
            Files.deleteIfExists(its);
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
    }

    @Override
    public void close() {}

    /** A broker gives up on a slow read by interrupting it; the store gets its object all the same. */
    private void sleepThoughInterrupted() {
        long end = System.nanoTime() + slowMs * 1_000_000;
        while (System.nanoTime() < end) {
            try {
                Thread.sleep(Math.max(1, (end - System.nanoTime()) / 1_000_000));
            } catch (InterruptedException e) {
                // Goes on.
            }
        }
    }

    private static void copy(Path from, Path into, IndexType type) throws IOException {
        Files.copy(from, into.resolve(type.name()), StandardCopyOption.REPLACE_EXISTING);
    }

    private Path folderOf(RemoteLogSegmentMetadata segment) {
        return folder.resolve(segment.remoteLogSegmentId().id().toString());
    }
}
