import java.io.FileInputStream;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;

/** Prints the subject of a PEM certificate as Kafka's default principal builder writes it. */
public class CertificateSubject {
    public static void main(String[] arguments) throws Exception {
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            CertificateFactory factory = CertificateFactory.getInstance("X.509");
            X509Certificate certificate = (X509Certificate) factory.generateCertificate(file);
            System.out.println(certificate.getSubjectX500Principal().getName());
        }
    }
}
