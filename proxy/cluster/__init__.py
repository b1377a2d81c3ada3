"""The cluster, as the proxy itself asks it: who its brokers are, and the settings of topics."""
