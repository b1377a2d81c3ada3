import com.fasterxml.jackson.annotation.JsonProperty;
import io.kroxylicious.proxy.plugin.Plugin;
import io.kroxylicious.proxy.service.ClusterNetworkAddressConfigProvider;
import io.kroxylicious.proxy.service.ClusterNetworkAddressConfigProviderService;
import io.kroxylicious.proxy.service.HostPort;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Bootstrap on `port`, broker `node` on the next one, on the loopback alone: its own listeners take every interface. */
@Plugin(configType = LoopbackListeners.Config.class)
public class LoopbackListeners implements ClusterNetworkAddressConfigProviderService<LoopbackListeners.Config> {
    private static final String HOST = "127.0.0.1";

    public record Config(@JsonProperty(required = true) int port, @JsonProperty(required = true) int node) {}

    @Override
    public ClusterNetworkAddressConfigProvider build(Config config) {
        HostPort bootstrap = new HostPort(HOST, config.port());
        HostPort broker = new HostPort(HOST, config.port() + 1);
        return new ClusterNetworkAddressConfigProvider() {
            @Override public HostPort getClusterBootstrapAddress() { return bootstrap; }
            @Override public HostPort getBrokerAddress(int nodeId) {
                if (nodeId != config.node()) throw new IllegalArgumentException("there is one broker, " + config.node());
                return broker;
            }
            @Override public Optional<String> getBindAddress() { return Optional.of(HOST); }
            @Override public Set<Integer> getExclusivePorts() { return Set.of(bootstrap.port(), broker.port()); }
            @Override public Map<Integer, HostPort> discoveryAddressMap() { return Map.of(config.node(), broker); }
        };
    }
}
