// SPDX-License-Identifier: Apache-2.0
// The one place where Scala, Chisel and firtool versions are pinned.
val chiselVersion  = "7.14.0"
val firtoolVersion = "1.155.0"

val writeClasspath = taskKey[File]("Write the run-time classpath, so that elaboration needs java alone")

ThisBuild / scalaVersion := "2.13.16"

lazy val root = (project in file("."))
  .settings(
    name         := "openvta",
    organization := "openvta",
    version      := "0.1.0",
    libraryDependencies ++= Seq(
      "org.chipsalliance" %% "chisel"        % chiselVersion,
      "org.chipsalliance"  % "llvm-firtool"  % firtoolVersion,
    ),
    addCompilerPlugin("org.chipsalliance" % "chisel-plugin" % chiselVersion cross CrossVersion.full),
    // Chisel 7.14 asks for a scala-library newer than the compiler its plugin is published for.
    allowUnsafeScalaLibUpgrade := true,
    scalacOptions ++= Seq("-deprecation", "-feature", "-unchecked", "-Xlint", "-Werror", "-language:reflectiveCalls"),
    writeClasspath := {
      val file = target.value / "classpath.txt"
      val path = (Compile / fullClasspath).value.files.mkString(java.io.File.pathSeparator)
      IO.write(file, path)
      file
    },
  )
