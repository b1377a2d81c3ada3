"""TLS contexts, certificates, handshakes and sockets."""
