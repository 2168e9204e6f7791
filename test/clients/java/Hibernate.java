// Jars: postgresql hibernate3 hibernate-core hibernate-commons-annotations geronimo-jpa_2.0_spec geronimo-jta-1.2-spec
// Jars: dom4j slf4j-api slf4j-nop javassist commons-collections3 antlr
import java.io.Serializable;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Queue;
import java.util.stream.Collectors;
import javax.persistence.Entity;
import javax.persistence.GeneratedValue;
import javax.persistence.GenerationType;
import javax.persistence.Id;
import javax.persistence.Table;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.GenericGenerator;
import org.hibernate.cfg.Configuration;
import org.hibernate.engine.SessionImplementor;
import org.hibernate.id.IdentifierGenerator;

/** Hibernate: IDENTITY, which is a round trip for each row; or a generator that takes a hundred ids at a time. */
final class Hibernate {
    @Entity
    @Table(name = "photos")
    static class Photo {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;
        String caption;
    }

    @Entity
    @Table(name = "uploads")
    static class Upload {
        @Id
        @GeneratedValue(generator = "snowflake")
        @GenericGenerator(name = "snowflake", strategy = "Hibernate$NextIds")
        Long id;
        String caption;
    }

    @Entity
    @Table(name = "comments")
    static class Comment {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Integer id;
        String body;
    }

    /** Ids of shard 5, a hundred at a time. */
    public static class NextIds implements IdentifierGenerator {
        static int calls;
        private final Queue<Long> ids = new ArrayDeque<>();

        @Override
        public synchronized Serializable generate(SessionImplementor session, Object object) {
            if (ids.isEmpty()) {
                calls++;
                try (PreparedStatement select =
                        session.connection().prepareStatement("SELECT unnest(snowflake.next_ids(5, 100))")) {
                    for (ResultSet row = select.executeQuery(); row.next(); ) {
                        ids.add(row.getLong(1));
                    }
                } catch (SQLException error) {
                    throw new IllegalStateException(error);
                }
            }
            return ids.remove();
        }
    }

    private static List<String> asText(Session session, String table) {
        List<?> rows = session.createSQLQuery("SELECT CAST(id AS text) AS digits FROM " + table + " ORDER BY id").list();
        return rows.stream().map(Object::toString).collect(Collectors.toList());
    }

    public static void main(String[] arguments) {
        Properties properties = new Properties();
        properties.put("hibernate.connection.url", Tap.url());
        properties.put("hibernate.connection.driver_class", "org.postgresql.Driver");
        properties.put("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect");
        properties.put("hibernate.temp.use_jdbc_metadata_defaults", "false");
        properties.put("hibernate.jdbc.use_get_generated_keys", "true");
        SessionFactory factory = new Configuration().addProperties(properties)
                .addAnnotatedClass(Photo.class).addAnnotatedClass(Upload.class).addAnnotatedClass(Comment.class).buildSessionFactory();
        Session session = factory.openSession();
        session.beginTransaction();
        session.createSQLQuery("CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)").executeUpdate();
        session.createSQLQuery("CREATE TABLE uploads (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)").executeUpdate();

        List<String> ids = new ArrayList<>();
        for (int row = 0; row < 100; row++) {
            Photo photo = new Photo();
            photo.caption = "first light";
            session.save(photo);
            ids.add(photo.id.toString());
        }
        Tap.equal(ids, asText(session, "photos"), "IDENTITY");
        session.flush();
        session.clear();
        Tap.equal(((Photo) session.get(Photo.class, Long.valueOf(ids.get(0)))).caption, "first light", "get() by id");

        ids.clear();
        for (int row = 0; row < 250; row++) {
            Upload upload = new Upload();
            upload.caption = "many";
            session.save(upload);
            ids.add(upload.id.toString());
        }
        session.flush();
        Tap.equal(ids, asText(session, "uploads"), "a generator over next_ids()");
        Tap.equal(NextIds.calls, 3, "three calls for 250 rows");

        // Tests adopt() on an application whose key had the type Integer. The model of the application stays unchanged.
        session.createSQLQuery("CREATE TABLE comments (id serial PRIMARY KEY, body text)").executeUpdate();
        session.save(new Comment());
        session.flush();
        session.clear();
        session.createSQLQuery("CREATE EXTENSION snowflake_migrate").executeUpdate();
        session.createSQLQuery("CALL snowflake.adopt('comments', 5, rewrite => true)").executeUpdate();
        Tap.equal(((Comment) session.get(Comment.class, 1)).id, 1, "an adopted table: a model that says Integer finds old rows");
        try {
            session.save(new Comment());
            Tap.equal("no error", "an error", "trap: it fails after it has written a row");
        } catch (RuntimeException error) {
            Tap.equal(String.valueOf(error.getCause()).contains("Bad value for type int"), true, "trap: it fails after it has written a row");
        }
        session.clear();
        Tap.equal(asText(session, "comments").size(), 2, "... with a new id");
        session.getTransaction().commit();
        session.close();
        factory.close();
        Tap.done();
    }
}
